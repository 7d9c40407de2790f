package diskengine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// full is a machine with a store on it that has sstables, deletion bitmaps and more in its log.
func full(t *testing.T) (*machine, map[string]engine.State) {
	t.Helper()
	ms := &machines{clock: enginetest.NewClock()}
	m := ms.machine()
	m.tune = diskengine.Tune{SegmentBytes: 8 << 10, BlockBytes: 512, MergeTables: 8}
	e := m.open(t)
	states := map[string]engine.State{}
	ctx := t.Context()
	for round := range 4 {
		var msgs []engine.Message
		for i := range 20 {
			key := fmt.Sprintf("%d-%d", round, i)
			states[key] = engine.Ready
			msgs = append(msgs, engine.Message{Queue: "q", Key: key, Content: engine.Content{Body: make([]byte, 100)}})
		}
		if _, err := e.Push(ctx, msgs); err != nil {
			t.Fatal(err)
		}
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 6, Remote: true}})
		if err != nil {
			t.Fatal(err)
		}
		var s []engine.Settlement
		for i, l := range g.Queues[0].Messages {
			states[l.Key] = []engine.State{engine.Gone, engine.Dead, engine.Leased}[i%3]
			if do := []engine.Action{engine.Ack, engine.Bury, 0}[i%3]; do != 0 {
				s = append(s, engine.Settlement{Token: l.Token, Do: do})
			}
		}
		if _, err := e.Settle(ctx, s); err != nil {
			t.Fatal(err)
		}
		if round < 3 {
			if err := e.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return m, states
}

// holds fails the test unless an engine holds messages in such states.
func holds(t *testing.T, e *diskengine.Engine, states map[string]engine.State) {
	t.Helper()
	for key, want := range states {
		i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		if errors.Is(err, engine.ErrNotFound) {
			i.State, err = engine.Gone, nil
		}
		if err != nil || i.State != want {
			t.Errorf("%s is %v, %v; it was %v", key, i.State, err, want)
		}
	}
}

// TestOpeningFails lets each call of the disk fail in turn while a store is opened. It is opened
// all the same, or refused with one line, and nothing is lost.
func TestOpeningFails(t *testing.T) {
	for name, fault := range map[string]error{
		"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EMFILE": syscall.EMFILE, "a short write": &disktest.Short{Err: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			m, states := full(t)
			refused := 0
			step := max(1, 8/disktest.Thorough(1, 8))
			for at, struck := 1+rand.IntN(step), true; struck && !t.Failed(); at += step {
				m.mu.Lock()
				m.disk = m.disk.Kill()
				m.left, m.fault, m.struck = at, fault, false
				m.mu.Unlock()
				e, err := m.tryOpen()
				m.mu.Lock()
				m.left, struck = 0, m.struck
				m.mu.Unlock()
				if err != nil {
					refused++
					if !errors.Is(err, engine.ErrUnavailable) && !errors.Is(err, engine.ErrInvalid) {
						t.Errorf("call %d fails: %v", at, err)
					}
					if n := m.disk.Handles(); n > 0 {
						t.Errorf("call %d fails: %d files stay open: %v", at, n, m.opened)
					}
				} else if err := e.Close(); err != nil && !struck {
					t.Errorf("call %d: close: %v", at, err)
				}
				m.opened = nil
				m.disk = m.disk.Crash(disktest.Everything())
				e = m.open(t)
				holds(t, e, states)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
			if refused < 80/step/8 {
				t.Errorf("refused only %d times", refused)
			}
		})
	}
}

// TestRunsAreOpenedBesideOneAnother has an sstable wait at opening for another one to be opened. Where one
// of them cannot be, the store is not, and nothing stays open.
func TestRunsAreOpenedBesideOneAnother(t *testing.T) {
	for name, fault := range map[string]error{"all can be": nil, "one cannot be": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			m, states := full(t)
			m.tune.Openers = 2
			second, n := make(chan struct{}), atomic.Int32{}
			m.disk.Hook(func(c disktest.Call) error {
				if c.Op != disktest.Open || !strings.HasSuffix(c.Name, ".run") {
					return nil
				}
				switch n.Add(1) {
				case 1:
					select {
					case <-second:
					case <-time.After(time.Minute):
						t.Error("no other sstable is opened")
					}
				case 2:
					close(second)
					return fault
				}
				return nil
			})
			e, err := diskengine.OpenOn(m.disk, "data", &diskengine.Config{Now: m.clock.Now, Logger: quiet, MinFreeBytes: -1}, m.tune)
			if fault != nil {
				if !errors.Is(err, engine.ErrUnavailable) || m.disk.Handles() > 0 {
					t.Errorf("%v; %d files are open", err, m.disk.Handles())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range states {
				info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
				if is := info.State; err == nil && is != want || err != nil && want != engine.Gone {
					t.Errorf("%s is %v, %v, want %v", key, is, err, want)
				}
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
