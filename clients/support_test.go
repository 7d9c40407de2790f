// Package clients_test runs the tests of the clients in other languages against real servers.
package clients_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// missing skips a test, or fails it with TARRY_TEST_CLIENTS=require. fix says what helps.
func missing(t *testing.T, what, fix string) {
	t.Helper()
	if os.Getenv("TARRY_TEST_CLIENTS") == "require" {
		t.Fatalf("%s, and TARRY_TEST_CLIENTS=require: %s", what, fix)
	}
	t.Skipf("%s: %s", what, fix)
}

// command builds the command tarry once and returns its path.
var command = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "tarry")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/tarry").CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

// built is the directory of what command builds.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "tarry-clients"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// tarry returns the path of the command tarry.
func tarry(t *testing.T) string {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// serve runs tarry serve in memory until the test ends, and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	server := exec.Command(tarry(t), "serve", "--http", "127.0.0.1:0", "--store", "mem:")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), " listens on ")
	if !ok {
		t.Fatalf("the server said %q, %v", line, err)
	}
	return url
}
