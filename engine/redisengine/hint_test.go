package redisengine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// asleep is a worker with nothing to do, and another engine of its store.
type asleep struct {
	*outage.Ledger
	t      *testing.T
	proxy  *redistest.Proxy // of the worker's engine
	client *tarry.Client
	other  *Engine
	n      int
}

func newAsleep(t *testing.T) *asleep {
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	a := &asleep{t: t, Ledger: outage.NewLedger(t, "q"), proxy: p, client: openClient(t, p.URL()), other: openStore(t, s.URL())}
	a.Work(a.client, tarry.WorkerConfig{})
	// It listens, and has handled something.
	outage.Succeeds(t, longWait, func() error {
		m := s.Do("PUBSUB", "NUMSUB", a.other.channel)
		listen, err := m.AsIntMap()
		if err == nil && listen[a.other.channel] == 0 {
			err = errors.New("nobody listens")
		}
		return err
	})
	a.wakes(false)
	return a
}

// wakes pushes a message that is due now with the other engine, once the worker has
// nothing to do, and returns how long it was until it was handled. The worker's engine
// may be cut off meanwhile.
func (a *asleep) wakes(cut bool) time.Duration {
	a.t.Helper()
	outage.Counts(a.t, a.client, "q", longWait, 0, 0, 0)
	a.n++
	key := fmt.Sprint(a.n)
	a.Change(func() { a.Entries[key] = &outage.Entry{Pushed: true, Due: time.Now()} })
	if cut {
		a.proxy.Refuse(true)
		a.proxy.Cut()
	}
	began := time.Now()
	push(a.t, a.other, plain("q", key))
	if cut {
		a.proxy.Refuse(false)
	}
	a.Await("the message to be handled", longWait, func() bool { return a.Entries[key].Handled > 0 })
	return time.Since(began)
}

// TestHint pushes with one engine what the worker of another handles at once.
func TestHint(t *testing.T) {
	t.Parallel()
	a := newAsleep(t)
	var took []time.Duration
	late := 0
	for range 10 {
		took = append(took, a.wakes(false))
		if took[len(took)-1] > Recheck/2 { // the last answer is trusted for nearly Recheck
			late++
		}
	}
	t.Logf("handled after %v", took)
	if late > len(took)/2 {
		t.Errorf("%d of %d came no sooner than without hints", late, len(took))
	}
}

// TestHintCut pushes while the worker's connections are cut.
func TestHintCut(t *testing.T) {
	t.Parallel()
	a := newAsleep(t)
	swift(t, "a push during a cut", Recheck/2, func() time.Duration { return a.wakes(true) })
}

// TestHintLost loses a hint, and nobody notices.
func TestHintLost(t *testing.T) {
	t.Parallel()
	a := newAsleep(t)
	a.other.common = "nobody 0 1"
	for range 5 { // on a busy machine it may be time to ask again when the push is made
		took := a.wakes(false)
		if t.Logf("handled after %v", took); took >= Recheck/10 {
			return
		}
	}
	t.Error("the hint was not lost")
}

// TestHintNobodyWatches leases with an engine that listens to no hints.
func TestHintNobodyWatches(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := openStore(t, s.URL()), openStore(t, s.URL())
	if got := leaseAll(t, a, "q"); len(got) > 0 {
		t.Fatalf("leased %d messages of none", len(got))
	}
	push(t, b, plain("q", "k"))
	if got := leaseAll(t, a, "q"); len(got) != 1 {
		t.Errorf("leased %d messages of 1 that is due", len(got))
	}
}
