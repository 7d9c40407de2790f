package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// others are the workers in other languages: the program that runs each, its arguments, and
// what its environment needs.
var others = map[string]struct {
	command []string
	env     string
}{
	"Python": {[]string{"python3", "worker.py"}, "PYTHONPATH=../../clients/python"},
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

	said, lines := io.Pipe()
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	languages := map[string]int{"Go": 0}
	all.Go(func() {
		if err := run(ctx, s.URL, lines); err != nil {
			t.Error(err)
		}
	})
	for language, o := range others {
		path, err := exec.LookPath(o.command[0])
		if err != nil {
			if os.Getenv("TARRY_TEST_SERVERS") == "require" {
				t.Error(err)
			}
			t.Logf("SKIPPED: %v: the worker in %s is not run", err, language)
			continue
		}
		languages[language] = 0
		cmd := exec.CommandContext(ctx, path, o.command[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Env = append(os.Environ(), "TARRY_SERVER="+s.URL, "PYTHONDONTWRITEBYTECODE=1", o.env)
		cmd.Stdout, cmd.Stderr = lines, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("the worker in %s: %v", language, err)
			}
		})
	}
	cancelled, overdue := make(chan [2]string), time.After(time.Minute)
	go func() {
		for scan := bufio.NewScanner(said); scan.Scan(); {
			var line [2]string
			_, _ = fmt.Sscanf(scan.Text(), "%s cancels order %s", &line[0], &line[1])
			cancelled <- line
		}
		close(cancelled)
	}()

	seen := make(map[string]bool)
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
	all.Wait()
	_ = lines.Close()
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
