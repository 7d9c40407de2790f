package beanstalk_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	_ "github.com/tarryhq/tarry/engine/pgengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	_ "github.com/tarryhq/tarry/engine/redisengine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/server/beanstalk"
)

// patience is how long an answer may take on a busy machine.
const patience = time.Minute

// kindVariable names what the tests run against: "mem", "disk", "redis" and "postgres" are stores of ours,
// "real" is Debian's beanstalkd, which checks the tests themselves.
const kindVariable = "TARRY_TEST_BEANSTALK"

// kind is mem unless the variable says otherwise.
func kind() string { return cmp.Or(os.Getenv(kindVariable), "mem") }

// onEach runs a test on the kind that is named, or else on each of ours; with -short only in memory.
func onEach(t *testing.T, test func(*testing.T, string)) {
	t.Parallel()
	kinds := []string{"mem", "disk", "redis", "postgres"}
	if k := os.Getenv(kindVariable); k != "" || testing.Short() {
		kinds = []string{kind()}
	}
	for _, k := range kinds {
		t.Run(k, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// site is a running server.
type site struct {
	network, addr string

	drain func()
	kill  func() // of a process
	pid   int
}

// settings of a site.
type settings struct {
	maxJob int    // 0: the default
	unix   string // listen on this socket
}

// start runs a server until the test ends.
func start(t testing.TB, kind string, s settings) *site {
	t.Helper()
	if kind == "real" {
		return startReal(t, s)
	}
	return startOurs(t, kind, s)
}

// startOurs serves a store of the kind.
func startOurs(t testing.TB, kind string, s settings) *site {
	t.Helper()
	url := "mem:"
	switch kind {
	case "disk":
		url = "disk:" + t.TempDir()
	case "postgres":
		url = pgtest.Shared(t) + "&migrate=true"
	case "redis":
		url = redistest.Shared(t)
	}
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	srv, err := beanstalk.New(c, &beanstalk.Config{MaxJob: s.maxJob, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	at := &site{network: "tcp", addr: "127.0.0.1:0", drain: srv.Drain}
	if s.unix != "" {
		at = &site{network: "unix", addr: s.unix, drain: srv.Drain}
	}
	ln, err := net.Listen(at.network, at.addr)
	if err != nil {
		t.Fatal(err)
	}
	at.addr = ln.Addr().String()
	served := make(chan error)
	go func() { served <- srv.Serve(context.WithoutCancel(t.Context()), ln) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return at
}

// program returns the path of beanstalkd, or skips the test.
func program(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("beanstalkd")
	if p := os.Getenv("TARRY_TEST_BEANSTALKD"); p != "" {
		path, err = p, nil // a newer one, built from its sources
	}
	if err == nil {
		return path
	}
	const what = "beanstalkd is not in the PATH: install the Debian package beanstalkd, or run make servers"
	if os.Getenv("TARRY_TEST_SERVERS") == "require" {
		t.Fatal(what)
	}
	t.Skip(what)
	return ""
}

// old reports whether the real beanstalkd is 1.12, which waits for ever where later ones answer BAD_FORMAT.
func old(t testing.TB) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t), "-v").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "beanstalkd 1.12"
}

// startReal runs beanstalkd on a free port.
func startReal(t testing.TB, s settings) *site {
	t.Helper()
	path := program(t)
	for range 20 {
		port := strconv.Itoa(nettest.FreePort(t))
		at := &site{network: "tcp", addr: "127.0.0.1:" + port}
		args := []string{"-l", "127.0.0.1", "-p", port}
		if s.unix != "" {
			at = &site{network: "unix", addr: s.unix}
			args = []string{"-l", "unix:" + s.unix}
		}
		if s.maxJob != 0 {
			args = append(args, "-z", strconv.Itoa(s.maxJob))
		}
		var log bytes.Buffer
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // killed
			close(ended)
		}()
		at.kill = func() {
			_ = cmd.Process.Kill() // it may have ended
			<-ended
		}
		at.drain = func() { drainReal(t, cmd, at) }
		if at.await(ended) {
			t.Cleanup(at.kill)
			return at
		}
		at.kill() // another has the port
	}
	t.Fatal("beanstalkd found no free port")
	return nil
}

// await waits until the server accepts connections, and reports false when it ends instead.
func (s *site) await(ended <-chan struct{}) bool {
	for {
		c, err := net.Dial(s.network, s.addr)
		if err == nil {
			_, _ = io.WriteString(c, "quit\r\n")
			_, _ = io.Copy(io.Discard, c) // until the server has closed it, and counts it no more
			_ = c.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// drainReal tells a server to accept no more jobs, and waits until it has heard.
func drainReal(t testing.TB, cmd *exec.Cmd, at *site) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	c := at.dial(t)
	for yaml(c.cmd("stats"))["draining"] != "true" {
		time.Sleep(time.Millisecond)
	}
}

// startProcess runs this test's program as a server on the disk store in dir until it is killed.
func startProcess(t *testing.T, dir string) *site {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), serveDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	at := &site{network: "tcp", pid: cmd.Process.Pid}
	at.kill = func() {
		_ = cmd.Process.Kill() // it may have ended
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}
	t.Cleanup(at.kill)
	if _, err := fmt.Fscanln(out, &at.addr); err != nil {
		t.Fatal("the server did not say its address: ", err)
	}
	return at
}

// socket returns the path of a new unix socket, short enough for any system.
func socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}
