//go:build linux

package rawhttp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/bench/process"
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
var built = sync.OnceValues(func() (path string, err error) {
	path, leave, err = process.Build("tarry")
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
	address := process.Address(b).String()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "ADDRESS", address)
	}
	cmd := exec.Command(path, args...)
	if env != nil {
		cmd.Env = append(append(os.Environ(), env...), envListen+"="+address)
	}
	cmd.Stderr = os.Stderr
	return &server{pid: process.Start(b, cmd, address), trivial: env != nil, clients: dialAll(b, address)}
}
