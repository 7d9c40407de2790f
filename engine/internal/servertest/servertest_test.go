package servertest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

// The test's own program is the server of these tests: with this role in its
// environment it answers each line with the same line.
const role = "TARRY_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "echo" {
		echo(os.Args[1])
		return
	}
	leaktest.Main(servertest.Main(m))
}

// echo listens on a port, and writes each line that it gets into the file "lines".
func echo(port string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("it serves")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			for lines := bufio.NewScanner(c); lines.Scan(); {
				line := lines.Text()
				f, _ := os.OpenFile("lines", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				fmt.Fprintln(f, line)
				f.Close()
				fmt.Fprintln(c, line)
			}
			c.Close()
		}()
	}
}

func command() servertest.Command {
	return servertest.Command{
		Program: os.Args[0],
		Args:    func(ports []int) []string { return []string{strconv.Itoa(ports[0])} },
		Env:     []string{role + "=echo"},
		Ready:   []string{"it serves"},
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, command())
	addr := s.Addr()
	dial(t, addr).ask("one")
	for what, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		c := dial(t, addr)
		end()
		c.broken()
		if s.Running() {
			t.Errorf("%s: it runs", what)
		}
		if _, err := net.Dial("tcp", addr); err == nil {
			t.Errorf("%s: something listens", what)
		}
		s.Restart()
		dial(t, addr).ask(what)
	}
	if b, err := os.ReadFile(s.Dir() + "/lines"); err != nil || strings.Count(string(b), "\n") != 3 {
		t.Errorf("it has kept %q, %v", b, err)
	}
	if s.Log() != "it serves\n" {
		t.Errorf("it wrote %q", s.Log())
	}
}

func TestServerPauses(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, command())
	c := dial(t, s.Addr())
	c.ask("one")
	s.Pause()
	if s.Running() {
		t.Error("it runs")
	}
	c.write("two")
	s.Resume()
	c.reads("two")
	s.Pause() // what stands still can be killed too
}

func TestServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"echo bind: Address already in use": "a port is taken",
		"echo no; exit 1":                   "has ended at once:\nno",
	} {
		c := servertest.Command{Program: "/bin/sh", Args: func([]int) []string { return []string{"-c", script} }}
		if said := fails(t, func(r *recorder) { servertest.Start(r, c) }); !strings.Contains(said, says) {
			t.Errorf("%s: it says %q", script, said)
		}
	}
}

// victim, in the environment, tells this test's own process to start a server and
// wait to be killed.
const victim = "TARRY_TEST_VICTIM"

func TestServerDiesWithItsProcess(t *testing.T) {
	if os.Getenv(victim) != "" {
		fmt.Println(servertest.Start(t, command()).Addr())
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), victim+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, strings.TrimSpace(line))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	c.broken()
}

// recorder is a test that may be skipped or fail without harm.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Skipf(format string, args ...any) { r.stop("skip: " + fmt.Sprintf(format, args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.stop("fail: " + fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(args ...any) { r.stop("fail: " + fmt.Sprint(args...)) }

func (r *recorder) stop(said string) {
	r.said = said
	runtime.Goexit()
}

// fails runs f and returns what it says of its skip or failure.
func fails(t *testing.T, f func(r *recorder)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.said
}

func TestMissingProgram(t *testing.T) {
	for require, want := range map[string]string{"": "skip: ", "require": "fail: "} {
		t.Setenv("TARRY_TEST_SERVERS", require)
		said := fails(t, func(r *recorder) { servertest.Installed(r, "no-such-program", "its-package") })
		if !strings.HasPrefix(said, want) || !strings.Contains(said, "no-such-program") || !strings.Contains(said, "its-package") {
			t.Errorf("TARRY_TEST_SERVERS=%q: it says %q", require, said)
		}
	}
}

func TestShared(t *testing.T) {
	start := func() string { return "started" }
	for value, want := range map[string]string{"": "started", "redis://h": "redis://h"} {
		t.Setenv("TARRY_TEST_SOME_URL", value)
		if got := servertest.Shared("TARRY_TEST_SOME_URL", start); got != want {
			t.Errorf("with %q the URL is %q", value, got)
		}
	}
}

// conn is a connection to a server that says what it hears.
type conn struct {
	t *testing.T
	net.Conn
}

func dial(t *testing.T, addr string) conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be cut
	return conn{t, c}
}

func (c conn) write(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c conn) reads(line string) {
	c.t.Helper()
	got := make([]byte, len(line)+1)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != line+"\n" {
		c.t.Fatalf("it reads %q, %v, not %q", got, err, line)
	}
}

func (c conn) ask(line string) {
	c.t.Helper()
	c.write(line)
	c.reads(line)
}

// silent fails the test if anything comes, or the connection ends, within a moment.
func (c conn) silent() {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		c.t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("%d bytes, %v", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		c.t.Fatal(err)
	}
}

// broken fails the test unless the connection ends, without another byte.
func (c conn) broken() {
	c.t.Helper()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		c.t.Fatalf("%d bytes, %v", n, err)
	}
}

func TestProgramsOfAnotherRoot(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TARRY_TEST_ROOT", root)
	for _, path := range []string{"usr/sbin/direct", "opt/db-9/bin/apart"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/not/outside", filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
		if got := servertest.Installed(t, filepath.Base(path), "pkg", "/opt/db-*/bin"); got != filepath.Join(root, path) {
			t.Errorf("%s is found as %s", path, got)
		}
	}
	if cmd := servertest.CommandContext(t.Context(), "direct"); cmd.SysProcAttr.Chroot != root {
		t.Errorf("it runs in %q", cmd.SysProcAttr.Chroot)
	}
}
