package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// other is a worker in another language.
type other struct {
	command []string // the program that runs it, and its arguments
	env     string   // what its environment needs
	require string   // names the variable that, set to "require", makes the test fail without it
}

// others return the workers, or why one cannot run.
var others = map[string]func(*testing.T) (other, error){
	"Python": func(*testing.T) (other, error) {
		return other{[]string{"python3", "worker.py"}, "PYTHONPATH=../../clients/python", "TARRY_TEST_SERVERS"}, nil
	},
	"Node": node,
}

// node compiles the client for Node to where the worker finds it.
func node(t *testing.T) (other, error) {
	const client, tsc = "../../clients/node", "../../clients/node/node_modules/typescript/bin/tsc"
	dir := t.TempDir()
	o := other{[]string{"node", filepath.Join(dir, "worker.mjs")}, "", "TARRY_TEST_CLIENTS"}
	if _, err := os.Stat(tsc); err != nil {
		return o, fmt.Errorf("make client-packages installs the compiler: %w", err)
	}
	installed := filepath.Join(dir, "node_modules", "@tarryhq", "client")
	if out, err := exec.CommandContext(t.Context(), "node", tsc, "-p", client, "--outDir", filepath.Join(installed, "dist")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for to, from := range map[string]string{installed: client + "/package.json", dir: "worker.mjs"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(from)), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o, nil
}

// TestWorkers has workers in all languages share a shop's orders. Each unpaid one is
// cancelled once, and no paid one.
func TestWorkers(t *testing.T) {
	e := memengine.New(nil)
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	s := httptest.NewServer(server.New(c, nil))
	defer s.Close()

	cancelled := make(chan [2]string)
	var all sync.WaitGroup
	// hear returns the output of a worker. Each has its own, as some write a line in pieces.
	hear := func() io.WriteCloser {
		said, lines := io.Pipe()
		all.Go(func() {
			for scan := bufio.NewScanner(said); scan.Scan(); {
				var line [2]string
				_, _ = fmt.Sscanf(scan.Text(), "%s cancels order %s", &line[0], &line[1])
				cancelled <- line
			}
		})
		return lines
	}
	ctx, stop := context.WithCancel(t.Context())
	languages := map[string]int{"Go": 0}
	lines := hear()
	all.Go(func() {
		defer lines.Close()
		if err := run(ctx, s.URL, lines); err != nil {
			t.Error(err)
		}
	})
	for language, prepare := range others {
		o, err := prepare(t)
		path, missing := exec.LookPath(o.command[0])
		if err := cmp.Or(err, missing); err != nil {
			if os.Getenv(o.require) == "require" {
				t.Error(err)
			}
			t.Logf("SKIPPED: %v: the worker in %s is not run", err, language)
			continue
		}
		languages[language] = 0
		lines := hear()
		cmd := exec.CommandContext(ctx, path, o.command[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Env = append(os.Environ(), "TARRY_SERVER="+s.URL, "PYTHONDONTWRITEBYTECODE=1", o.env)
		cmd.Stdout, cmd.Stderr = lines, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer lines.Close()
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("the worker in %s: %v", language, err)
			}
		})
	}

	seen, overdue := make(map[string]bool), time.After(time.Minute)
	took := func(line [2]string) {
		if _, known := languages[line[0]]; !known || seen[line[1]] || line[1][0] != 'u' {
			t.Errorf("%s cancelled order %q", line[0], line[1])
		}
		languages[line[0]]++
		seen[line[1]] = true
	}
	orders := 0
	for idle := true; idle; idle = least(languages) == 0 {
		for range 50 {
			orders++
			for kind, delay := range map[string]time.Duration{"unpaid": 0, "paid": time.Hour} {
				id := fmt.Sprint(kind, orders)
				if _, err := Unpaid.Push(ctx, c, Order{id}, tarry.In(delay), tarry.Key(id)); err != nil {
					t.Fatal(err)
				}
			}
			if err := Unpaid.Cancel(ctx, c, tarry.ByKey(fmt.Sprint("paid", orders))); err != nil {
				t.Fatal(err)
			}
		}
		for len(seen) < orders {
			select {
			case line := <-cancelled:
				took(line)
			case <-overdue:
				t.Fatalf("of %d orders these were cancelled: %v", orders, languages)
			}
		}
	}
	t.Log("cancelled", languages)
	stop()
	go func() {
		all.Wait()
		close(cancelled)
	}()
	for line := range cancelled {
		took(line)
	}
}

func least(counts map[string]int) int {
	n := -1
	for _, count := range counts {
		if n < 0 || count < n {
			n = count
		}
	}
	return n
}
