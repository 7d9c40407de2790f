//go:build linux

package top_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/cli"
)

const (
	exitOK          = 0
	exitUnavailable = 5

	patience = 3 * time.Minute
)

// TestMain lets the test binary be the program, for what starts it again.
func TestMain(m *testing.M) {
	if os.Getenv("TARRY_TEST_MAIN") != "" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// world is the environment of a program.
type world []string

func (w world) program(stdout, stderr io.Writer, args ...string) *cli.Program {
	return &cli.Program{
		Args:    args,
		Env:     append([]string{"PATH=" + os.Getenv("PATH"), "TARRY_TEST_MAIN=1", "TARRY_TIMEOUT=" + patience.String()}, w...),
		Stdin:   strings.NewReader(""),
		Stdout:  stdout,
		Stderr:  stderr,
		Now:     time.Now,
		Self:    os.Args[0],
		Reloads: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}
}

// must fails the test unless the command succeeds.
func (w world) must(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if code := w.program(&out, &out, args...).Run(t.Context()); code != exitOK {
		t.Fatalf("tarry %s: exit code %d\n%s", strings.Join(args, " "), code, &out)
	}
}

var listens = regexp.MustCompile(`listens on (http://\S+)`)

// serve runs a server with a store in memory, and returns the world of its clients.
func serve(t *testing.T, address string) (clients world, stop func()) {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.WithoutCancel(t.Context()))
	out, in := io.Pipe()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		code := world(nil).program(in, in, "serve", "--store", "mem:", "--http", address).Run(ctx)
		_ = in.Close()
		if code != exitOK {
			t.Errorf("serve ended with %d", code)
		}
	}()
	stop = sync.OnceFunc(func() { interrupt(); <-exited })
	t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return world{"TARRY_SERVER=" + m[1]}, stop
		}
	}
	t.Fatal("serve has ended")
	return nil, nil
}
