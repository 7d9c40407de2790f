package calls_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestCloseWaitsForTheCallsUnderWay(t *testing.T) {
	var g calls.Gate
	for range 2 {
		if err := g.Enter(t.Context(), "push"); err != nil {
			t.Fatal(err)
		}
	}
	idle := g.Close()
	if err := g.Enter(t.Context(), "push"); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("entered a closed gate: %v", err)
	}
	if g.TryEnter() {
		t.Error("entered a closed gate")
	}
	g.Leave()
	if ended(idle) {
		t.Fatal("idle with a call under way")
	}
	if again := g.Close(); again != idle {
		t.Error("a second Close has something else to wait for")
	}
	g.Leave()
	if !ended(idle) {
		t.Error("not idle after the last call")
	}
	for range 2 {
		if g.TryEnter() {
			t.Error("entered a closed gate")
		}
	}
}

func TestCloseOfAnIdleGateIsIdle(t *testing.T) {
	var g calls.Gate
	if !g.TryEnter() {
		t.Fatal("a new gate is closed")
	}
	g.Leave()
	if !ended(g.Close()) {
		t.Error("not idle")
	}
}

func TestAContextThatIsOverDoesNotEnter(t *testing.T) {
	var g calls.Gate
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := g.Enter(ctx, "lease")
	var e *engine.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Op != "lease" {
		t.Errorf("%v", err)
	}
	if !ended(g.Close()) {
		t.Error("it counts as a call under way")
	}
}

// Whoever was let in has left before the gate is idle, however calls and Close race.
func TestNobodyIsInsideOnceIdle(t *testing.T) {
	for range 200 {
		var g calls.Gate
		var wg sync.WaitGroup
		inside := make([]bool, 4) // written by calls only: the race detector sees one that is late
		for i := range inside {
			wg.Go(func() {
				for g.Enter(t.Context(), "push") == nil {
					inside[i] = !inside[i]
					g.Leave()
				}
			})
		}
		wg.Go(func() { <-g.Close() })
		<-g.Close()
		for i := range inside {
			inside[i] = true
		}
		wg.Wait()
	}
}

// Engines live in bubbles: whoever waits for idle there lets time pass.
func TestWaitingLetsTheTimeOfABubblePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g calls.Gate
		g.TryEnter()
		time.AfterFunc(48*time.Hour, g.Leave)
		<-g.Close()
	})
}

func BenchmarkEnter(b *testing.B) {
	var g calls.Gate
	ctx := b.Context()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if g.Enter(ctx, "push") == nil {
				g.Leave()
			}
		}
	})
}
