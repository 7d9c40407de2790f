package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// survivor is an engine in memory that outlives the crashes of those who use it,
// as a store on disk does: what was leased and not settled is then given back. It
// is the reference model because that, like an engine opened anew, looks at nothing
// but due times and the clock, which a new process begins with set back.
type survivor struct {
	*memengine.Engine
	clock *clock

	mu     sync.Mutex
	tokens []string
}

func newSurvivor(clk *clock) *survivor {
	return &survivor{Engine: memengine.New(&memengine.Config{Now: clk.now}), clock: clk}
}

// Lease remembers the leases.
func (s *survivor) Lease(ctx context.Context, wants []tarry.Want) (tarry.Grant, error) {
	g, err := s.Engine.Lease(ctx, wants)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range g.Queues {
		for _, l := range q.Messages {
			s.tokens = append(s.tokens, l.Token)
		}
	}
	return g, err
}

// crash gives back what was leased.
func (s *survivor) crash(t *testing.T) {
	t.Helper()
	var back []tarry.Settlement
	for _, token := range s.tokens {
		back = append(back, tarry.Settlement{Token: token, Do: tarry.DoRelease})
	}
	s.tokens = nil
	settled, err := s.Settle(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range settled {
		if got.Err != nil && !errors.Is(got.Err, tarry.ErrLeaseLost) { // lost: acked before
			t.Fatal(got.Err)
		}
	}
}

// runOn replays the small file on the survivor, with the log in dir.
func (s *survivor) runOn(t *testing.T, in *input, dir string, after func(string) error) (*outcomes, error) {
	t.Helper()
	s.clock.set(in.start())
	j, records, err := openJournal(filepath.Join(dir, journalName), header{journalFormat, in.sum, len(in.orders)})
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	c := tarry.New(s, nil)
	defer c.Close()
	r, err := newReplay(c, s.clock, j, in.orders, records)
	if err != nil {
		t.Fatal(err)
	}
	r.after = after
	return &r.ended, r.run(t.Context())
}

// TestCrashAtEveryStep ends the replay after each of its steps, and the run that
// goes on after each of its first ones.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	_, want := plainPass(t, smallFile)
	in, err := readFile(smallFile)
	if err != nil {
		t.Fatal(err)
	}
	for first := 1; ; first++ {
		ended := false
		for _, second := range []int{0, 1, 4} {
			t.Run(fmt.Sprint(first, second), func(t *testing.T) {
				s, dir := newSurvivor(new(clock)), t.TempDir()
				defer s.Close()
				_, err := s.runOn(t, in, dir, stopAfter(first))
				ended = err == nil
				for n := second; err != nil; n = 0 { // 0: goes on to the end
					if !errors.Is(err, errStop) {
						t.Fatal(err)
					}
					s.crash(t)
					_, err = s.runOn(t, in, dir, stopAfter(n))
				}
				got, err := s.runOn(t, in, dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				checkReport(t, got.report(len(in.orders), 0), want)
			})
		}
		if ended || t.Failed() {
			return
		}
	}
}

// TestKill9 kills the program at random points, again and again, until it comes to
// its end.
func TestKill9(t *testing.T) {
	t.Parallel()
	_, want := plainPass(t, smallFile)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		dir := t.TempDir()
		for kills := 0; kill(t, 1+rnd.IntN(34), "--file", smallFile, "--store", dir); {
			if kills++; kills == 100 {
				t.Fatal("the replay gets nowhere")
			}
		}
		checkReport(t, runJSON(t, "--file", smallFile, "--store", dir), want)
	}
}

func TestKill9OnRealFile(t *testing.T) {
	t.Parallel()
	name := realFile(t)
	_, want := plainPass(t, name)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for range 3 {
		if !kill(t, 1+rnd.IntN(4000), "--file", name, "--store", dir) {
			t.Fatal("the replay came to its end")
		}
	}
	checkReport(t, runJSON(t, "--file", name, "--store", dir), want)
}

// kill runs the program in a process of its own, which kills itself after so many
// steps, and reports whether it came so far.
func kill(t *testing.T, steps int, args ...string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", killAtEnv, steps))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if status, ok := syscall.WaitStatus(0), errors.As(err, &exit); ok {
		status, _ = exit.Sys().(syscall.WaitStatus)
		if status.Signaled() && status.Signal() == syscall.SIGKILL {
			return true
		}
	}
	t.Fatalf("%v: %s", err, &stderr)
	return false
}
