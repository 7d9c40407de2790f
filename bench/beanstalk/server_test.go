//go:build linux

package beanstalk

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/bench/process"
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

// built is the command tarry, which by this name is tarry beanstalkd.
var built = sync.OnceValues(func() (path string, err error) {
	path, leave, err = process.Build("beanstalkd")
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
		if bytes := process.Resident(t, s.pid); bytes < 1<<20 {
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
	address := process.Address(b)
	args := []string{"-l", "127.0.0.1", "-p", strconv.Itoa(address.Port)}
	for _, arg := range s.args {
		if arg == "DIR" {
			arg = b.TempDir()
		}
		args = append(args, arg)
	}
	return &server{address.String(), process.Start(b, exec.Command(path, args...), address.String())}
}
