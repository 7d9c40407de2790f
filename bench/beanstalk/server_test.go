//go:build linux

package beanstalk

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

// system is a server to measure. DIR among its arguments is a new directory.
type system struct {
	name   string
	args   []string
	slower int // it does the load divided by this
}

var systems = []system{
	{"beanstalkd", nil, 1},
	{"beanstalkd-synced", []string{"-b", "DIR", "-f0"}, 10},
	{"tarry-mem", nil, 1},
	{"tarry-disk", []string{"-b", "DIR"}, 1},
}

// built is the command tarry.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tarry-bench-")
	if err != nil {
		return "", err
	}
	leave = func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "beanstalkd") // by this name it is tarry beanstalkd
	out, err := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/tarry").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// leave removes what was built.
var leave = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	leave()
	os.Exit(code)
}

// Each server does what is measured, and has memory.
func TestServers(t *testing.T) {
	if _, err := exec.LookPath("beanstalkd"); err != nil {
		t.Skip("beanstalkd is not installed")
	}
	for _, sys := range systems {
		s := sys.start(t)
		fill(t, s, 1003, 0)
		each(t, s, 17, func(c *client) error { return c.work(1003 / 17) })
		must(t, dial(t, s).ask("peek-ready", "NOT_FOUND"))
		if bytes := s.resident(t); bytes < 1<<20 {
			t.Errorf("%s has %v bytes of memory", sys.name, bytes)
		}
	}
}

// server is a process that is measured.
type server struct {
	address string
	pid     int
}

// start starts a server, and kills it when the benchmark ends.
func (s system) start(b testing.TB) *server {
	b.Helper()
	path := "beanstalkd"
	if strings.HasPrefix(s.name, "tarry") {
		var err error
		path, err = built()
		must(b, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	address := l.Addr().(*net.TCPAddr)
	must(b, l.Close())
	args := []string{"-l", "127.0.0.1", "-p", strconv.Itoa(address.Port)}
	for _, arg := range s.args {
		if arg == "DIR" {
			arg = b.TempDir()
		}
		args = append(args, arg)
	}
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", address.String())
		if err == nil {
			_ = c.Close()
			return &server{address.String(), cmd.Process.Pid}
		}
		if time.Since(began) > 10*time.Second {
			b.Fatalf("%s does not listen: %v", s.name, err)
		}
	}
}

// resident returns the bytes of memory that the server has.
func (s *server) resident(b testing.TB) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.ParseFloat(number, 64)
	must(b, err)
	return kilobytes * 1024
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
