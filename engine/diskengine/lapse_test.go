package diskengine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

const manyLate = 3*lapseChunk + 10

// newLate is an engine with many leases that are over and that nobody has met yet.
// The loader sleeps.
func newLate(t *testing.T) (*Engine, *enginetest.Clock, []engine.Lease) {
	e, clock := openMem(t)
	var msgs []engine.Message
	for i := range manyLate {
		m := waiting(fmt.Sprint(i), 0)
		m.MaxAttempts = uint32(1 + i%2) // every other one dies
		msgs = append(msgs, m)
	}
	pushAll(t, e, msgs)
	e.queue("q").kicked = true
	var leases []engine.Lease
	for i := range manyLate {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, TTR: time.Second + time.Duration(i)*time.Millisecond}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatal(err, g)
		}
		leases = append(leases, g.Queues[0].Messages...)
	}
	clock.Advance(time.Minute)
	return e, clock, leases
}

// TestLeasesLapseInChunks has more leases be over than one batch ends: no call ends
// them all under the lock, the counts and lists are right all the same, and a Lease
// has them all in the end.
func TestLeasesLapseInChunks(t *testing.T) {
	e, _, _ := newLate(t)
	q := e.queue("q")
	for n := range 2 {
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "none"}); !errors.Is(err, engine.ErrNotFound) {
			t.Fatal(err)
		}
		if got, want := len(q.leases.byID), manyLate-(n+1)*lapseChunk; got != want {
			t.Fatalf("%d leases left, want %d", got, want)
		}
	}
	info, err := e.Queue(t.Context(), "q")
	if err != nil || info.Leased != 0 || info.Ready != manyLate/2 || info.Dead != manyLate/2 {
		t.Errorf("%+v, %v", info, err)
	}
	sound(t, q)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: manyLate}})
	if err != nil || len(g.Queues[0].Messages) != manyLate/2 || g.Queues[0].Died != manyLate/2 {
		t.Errorf("%d leased, %d died, %v", len(g.Queues[0].Messages), g.Queues[0].Died, err)
	}
	sound(t, q)
}

// TestLoaderEndsLeases has the loader end the leases that no call ends.
func TestLoaderEndsLeases(t *testing.T) {
	e, _, _ := newLate(t)
	q := e.queue("q")
	for n := len(q.leases.byID); n > 0; {
		if err := q.lapseLate(e.now()); err != nil {
			t.Fatal(err)
		}
		left := len(q.leases.byID)
		if left >= n || n-left > lapseChunk {
			t.Fatalf("%d leases, then %d", n, left)
		}
		n = left
	}
	sound(t, q)
}

// TestLateLeaseIsOver lets each call meet a message whose lease is over and has not
// been ended yet: for all of them it is ready, or dead.
func TestLateLeaseIsOver(t *testing.T) {
	t.Parallel()
	first := func(errs []error, err error) error { return errors.Join(append(errs, err)...) }
	push := func(c engine.Conflict, want engine.Outcome) func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
		return func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			m := waiting(ref.Key, 0)
			m.OnConflict = c
			r, err := e.Push(ctx, []engine.Message{m})
			if err == nil && r[0].Outcome != want {
				err = fmt.Errorf("outcome %v", r[0].Outcome)
			}
			return errors.Join(err, r[0].Err)
		}
	}
	settle := func(do engine.Action) func(ctx context.Context, e *Engine, _ engine.Ref, token string) error {
		return func(ctx context.Context, e *Engine, _ engine.Ref, token string) error {
			r, err := e.Settle(ctx, []engine.Settlement{{Token: token, Do: do, When: &engine.When{}, TTR: time.Minute}})
			return errors.Join(err, r[0].Err)
		}
	}
	for _, c := range []struct {
		name        string
		call        func(ctx context.Context, e *Engine, ref engine.Ref, token string) error
		alive, dead error // with attempts left, and without
	}{
		{"cancel", func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			return first(e.Cancel(ctx, []engine.Ref{{Queue: "q", Key: ref.Key}}))
		}, nil, engine.ErrNotFound},
		{"cancel by id", func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			return first(e.Cancel(ctx, []engine.Ref{{Queue: "q", ID: ref.ID}}))
		}, nil, nil},
		{"reschedule", func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			_, err := e.Reschedule(ctx, ref, engine.When{})
			return err
		}, nil, engine.ErrNotFound},
		{"claim", func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			l, err := e.Claim(ctx, ref, engine.Want{})
			if err == nil && l.Attempt != 2 {
				err = fmt.Errorf("attempt %d", l.Attempt)
			}
			return err
		}, nil, engine.ErrNotFound},
		{"get", func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			i, err := e.Get(ctx, ref)
			if i.State == engine.Dead {
				return errors.Join(err, engine.ErrNotFound)
			}
			if err == nil && (i.State != engine.Ready || i.LastError != engine.Lapsed) {
				err = fmt.Errorf("%+v", i)
			}
			return err
		}, nil, engine.ErrNotFound},
		{"reject", push(engine.Reject, 0), engine.ErrExists, nil},
		{"replace", push(engine.Replace, engine.Replaced), nil, nil},
		{"rearm", push(engine.Rearm, engine.Replaced), nil, nil},
		{"ack", settle(engine.Ack), nil, nil},
		{"extend", settle(engine.Extend), nil, nil},
		{"release", settle(engine.Release), nil, nil},
		{"redrive", func(ctx context.Context, e *Engine, ref engine.Ref, _ string) error {
			r, err := e.Redrive(ctx, "q", []engine.ID{ref.ID}, 0)
			if err == nil && r.Redriven == 0 {
				err = engine.ErrNotFound
			}
			return err
		}, engine.ErrNotFound, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _, leases := newLate(t)
			for i, l := range leases[len(leases)-2:] {
				want := c.dead
				if alive := l.MaxAttempts > 1; alive {
					want = c.alive
				}
				ref := engine.Ref{Queue: "q", ID: l.ID, Key: l.Key}
				if err := c.call(t.Context(), e, ref, l.Token); !errors.Is(err, want) && !(want == nil && l.MaxAttempts == 1) {
					t.Errorf("%d: got %v, want %v", i, err, want)
				}
			}
			sound(t, e.queue("q"))
		})
	}
}

// TestManyLapsesAreSyncedOnTheWay has one call end a great many leases: it does not
// keep the batches of all of them until the end.
func TestManyLapsesAreSyncedOnTheWay(t *testing.T) {
	e, clock := openMem(t)
	q, err := e.makeQueue("q")
	if err != nil {
		t.Fatal(err)
	}
	q.kicked = true // the loader sleeps
	const n = 3 * lapseMost
	var msgs []engine.Message
	for i := range n {
		msgs = append(msgs, waiting(fmt.Sprint(i), 0))
	}
	pushAll(t, e, msgs)
	if _, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n, TTR: time.Second}}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	p := pending{store: e.store}
	_, err = q.lockWhole(t.Context(), e.now(), &p)
	left := len(q.leases.byID)
	q.mu.Unlock()
	if err != nil || left > 0 {
		t.Errorf("%d leases left, %v", left, err)
	}
	if most := lapseMost / lapseChunk; len(p.batches) > most {
		t.Errorf("%d batches wait for a sync, want at most %d", len(p.batches), most)
	}
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}
