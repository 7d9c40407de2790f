package servertest_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// Nobody can be another user but root.
func TestServerRunsAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs servers as another user")
	}
	s := servertest.Start(t, servertest.Command{
		Program: "/bin/sh",
		User:    "nobody",
		Args:    func([]int) []string { return []string{"-c", "echo >mine; echo it is $(id -u); exec sleep 60"} },
		Ready:   []string{"it is"},
	})
	if want := servertest.Run(t, "nobody", s.Dir(), "id", "-u"); !strings.Contains(s.Log(), "it is "+want) {
		t.Errorf("it says %q, not %s", s.Log(), want)
	}
	if said := fails(t, func(r *recorder) { servertest.Run(r, "no-such-user", s.Dir(), "id") }); !strings.Contains(said, "no-such-user") {
		t.Errorf("it says %q", said)
	}
}

// A server that lasts is there for the test that follows, and has its port to itself.
func TestServerThatLasts(t *testing.T) {
	var s *servertest.Server
	t.Run("starts it", func(t *testing.T) {
		s = servertest.Start(servertest.Lasting(t), command())
	})
	dial(t, s.Addr()).ask("one")
	if _, port, err := net.SplitHostPort(s.Addr()); err != nil || port != strconv.Itoa(s.Port(0)) {
		t.Errorf("its port is %s, %v", port, err)
	}
}

func TestInstalledLooksIntoFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, version := range []string{"14", "15"} {
		if err := os.MkdirAll(filepath.Join(dir, version, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "bin/no-such-program"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got := servertest.Installed(t, "no-such-program", "its-package", filepath.Join(dir, "none"), filepath.Join(dir, "*/bin"))
	if want := filepath.Join(dir, "15/bin/no-such-program"); got != want {
		t.Errorf("it is %s, not %s", got, want)
	}
}
