package servertest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// forker leaves a child in a session of its own, which counts in the file "beats".
func forker(t *testing.T) *servertest.Server {
	t.Helper()
	return servertest.Start(t, servertest.Command{
		Program: "/bin/sh",
		Args: func([]int) []string {
			return []string{"-c", `setsid sh -c 'while echo >>beats; do sleep 0.01; done' & echo it serves; wait`}
		},
		Ready: []string{"it serves"},
	})
}

func beats(s *servertest.Server) int64 {
	if f, err := os.Stat(filepath.Join(s.Dir(), "beats")); err == nil {
		return f.Size()
	}
	return 0
}

// beating waits until the child has counted on.
func beating(t *testing.T, s *servertest.Server) {
	t.Helper()
	from := beats(s)
	servertest.Await(t, "the child to count", func() error {
		if beats(s) == from {
			return errors.New("it does not")
		}
		return nil
	})
}

// still fails the test if the child counts on within a moment.
func still(t *testing.T, s *servertest.Server) {
	t.Helper()
	from := beats(s)
	time.Sleep(50 * time.Millisecond)
	if n := beats(s); n != from {
		t.Errorf("the child has counted from %d to %d", from, n)
	}
}

// What a server forks is killed and paused with it, also outside its process group.
func TestServerTakesItsChildrenWithIt(t *testing.T) {
	t.Parallel()
	s := forker(t)
	beating(t, s)
	s.Pause()
	still(t, s)
	s.Resume()
	beating(t, s)
	s.Kill()
	still(t, s)
}
