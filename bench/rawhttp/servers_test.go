//go:build linux

package rawhttp

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// system is a server to measure.
type system struct {
	name  string
	start func(b testing.TB) *server
}

var systems = []system{
	{"tarry", func(b testing.TB) *server {
		path, err := built()
		must(b, err)
		return start(b, path, nil, "serve", "--store", "disk:"+b.TempDir(), "--http", "ADDRESS")
	}},
	{"sleep", func(b testing.TB) *server { return start(b, os.Args[0], []string{envWait + "=" + sleep.String()}) }},
	{"log", func(b testing.TB) *server {
		return start(b, os.Args[0], []string{envLog + "=" + filepath.Join(b.TempDir(), "log")})
	}},
}

// built is the command tarry.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tarry-bench-")
	if err != nil {
		return "", err
	}
	leave = func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "tarry")
	out, err := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/tarry").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// leave removes what was built.
var leave = func() {}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// server is a process that is measured.
type server struct {
	pid     int
	trivial bool
	clients []*client
	keys    int // messages so far
}

// start starts a server on a free port, and kills it when the benchmark ends. env is for a
// trivial one.
func start(b testing.TB, path string, env []string, args ...string) *server {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	address := l.Addr().String()
	must(b, l.Close())
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "ADDRESS", address)
	}
	cmd := exec.Command(path, args...)
	if env != nil {
		cmd.Env = append(append(os.Environ(), env...), envListen+"="+address)
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Since(began) > 10*time.Second {
			b.Fatalf("%s does not listen: %v", path, err)
		}
	}
	return &server{pid: cmd.Process.Pid, trivial: env != nil, clients: dialAll(b, address)}
}

// used returns the processor time that the server has used, in whole ticks of 10 ms.
func (s *server) used(b testing.TB) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	must(b, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	must(b, err)
	system, err := strconv.Atoi(fields[12])
	must(b, err)
	return time.Duration(user+system) * time.Second / 100
}
