package diskengine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestNearIsBoundedOverAllQueues asks many queues for what is due that have messages in several
// sstables: what is read ahead for them all keeps to its share of the memory, and no message is missed.
func TestNearIsBoundedOverAllQueues(t *testing.T) {
	const queues, runs, each, share = 40, 3, 40, 64 << 10
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet},
		diskengine.Tune{SegmentBytes: 256 << 10, NearBytes: share, MergeTables: 100}}
	e := p.open(t)
	var wants []engine.Want
	for q := range queues {
		wants = append(wants, engine.Want{Queue: fmt.Sprint("q", q), Max: 10, TTR: 24 * time.Hour})
	}
	for range runs {
		var msgs []engine.Message
		for i := range queues * each {
			msgs = append(msgs, engine.Message{Queue: wants[i%queues].Queue, Due: engine.When{In: time.Duration(1+i/queues%2) * time.Hour}})
		}
		if _, err := e.Push(t.Context(), msgs); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	most := int64(0)
	lease := func() (n int) {
		for i := range wants {
			g, err := e.Lease(t.Context(), wants[i:i+1])
			if err != nil {
				t.Fatal(err)
			}
			n += len(g.Queues[0].Messages)
			if g.Queues[0].More {
				most = max(most, e.Near())
			}
		}
		most = max(most, e.Near())
		return n
	}
	if n := lease(); n > 0 {
		t.Errorf("%d are leased early", n)
	}
	for h := range 2 {
		clock.Advance(time.Hour)
		n, more := 0, 1
		for more > 0 {
			more = lease()
			n += more
		}
		if n != queues*runs*each/2 {
			t.Errorf("hour %d: %d of %d are leased", h+1, n, queues*runs*each/2)
		}
		clock.Advance(-time.Minute) // all that is near is found again
		clock.Advance(time.Minute)
	}
	t.Logf("at most %d KiB", most>>10)
	if most > share*5/4 || most < share/4 {
		t.Errorf("what is near takes %d bytes, about %d are its share", most, share)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHintAfterAStepBack gives a lease back of a queue that allows no second one, when the clock has
// stepped back since: who waits for the other message is told.
func TestHintAfterAStepBack(t *testing.T) {
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
	e := p.open(t)
	if _, err := e.Configure(t.Context(), "q", engine.Settings{InFlight: 1}, ""); err != nil {
		t.Fatal(err)
	}
	push(t, e, "a", 0)
	push(t, e, "b", 0)
	clock.Advance(time.Second)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, TTR: time.Minute}})
	if err != nil || len(g.Queues[0].Messages) != 1 || !g.Queues[0].Held {
		t.Fatal(g, err)
	}
	hinted := 0
	defer e.Watch(func(string) { hinted++ })()
	clock.Advance(-time.Millisecond)
	if _, err := e.Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}}); err != nil {
		t.Fatal(err)
	}
	if hinted == 0 {
		t.Error("another one may be leased, and nobody is told")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNobodyWaitsForWhatIsForgotten leases a message in a queue with many keys that are remembered no
// longer: a few of them are dropped on the way.
func TestNobodyWaitsForWhatIsForgotten(t *testing.T) {
	const n = 3000
	clock := enginetest.NewClock()
	steps := 0
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet},
		diskengine.Tune{SegmentBytes: 256 << 10, Still: true, Stepped: func() { steps++ }}}
	e := p.open(t)
	var msgs []engine.Message
	var refs []engine.Ref
	for i := range n {
		key := fmt.Sprint(i)
		msgs = append(msgs, engine.Message{Queue: "q", Key: key, Terms: engine.Terms{Remember: time.Second}})
		refs = append(refs, engine.Ref{Queue: "q", Key: key})
	}
	if _, err := e.Push(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Cancel(t.Context(), refs); err != nil {
		t.Fatal(err)
	}
	push(t, e, "due", 0)
	clock.Advance(time.Minute)
	steps = 0
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatal(g, err)
	}
	if steps > 3 {
		t.Errorf("the message waited for %d steps that changed something", steps)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNobodyAsksInVain leases from a queue that has more ready than turns has room for, and holds them
// back: whoever asks is told when some may be had, not to come again at once.
func TestNobodyAsksInVain(t *testing.T) {
	const n = 200
	for name, s := range map[string]engine.Settings{"rate": {Rate: 0.1, Burst: 1}, "in flight": {InFlight: 1}} {
		clock := enginetest.NewClock()
		p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, Ready: 100}}
		e := p.open(t)
		if _, err := e.Configure(t.Context(), "q", s, ""); err != nil {
			t.Fatal(err)
		}
		if r, err := e.Push(t.Context(), slices.Repeat([]engine.Message{{Queue: "q"}}, n)); err != nil || r[n-1].Err != nil {
			t.Fatal(err)
		}
		for want := 1; want >= 0; want-- {
			g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 10, TTR: 10 * time.Second}})
			if err != nil || len(g.Queues[0].Messages) != want || !g.Queues[0].Held {
				t.Fatalf("%s: %d are leased, %d may be: %v", name, len(g.Queues[0].Messages), want, err)
			}
			if next := g.Queues[0].NextDue.Sub(g.Now); next < 9*time.Second || next > 10*time.Second {
				t.Errorf("%s: some may be leased in 10 s, and are asked for in %v", name, next)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
