package sqltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// soon repeats a call that may be unavailable at first.
func soon(t *testing.T, do func() error) error {
	t.Helper()
	var err error
	for range 3 {
		if err = do(); !errors.Is(err, engine.ErrUnavailable) {
			return err
		}
	}
	t.Fatal(err)
	return err
}

// lostOps are calls on the empty queue "orders". The key belongs to a message of another queue.
var lostOps = map[string]func(ctx context.Context, e engine.Whole) error{
	"push": func(ctx context.Context, e engine.Whole) error {
		r, err := e.Push(ctx, []engine.Message{{Queue: "orders", Key: "pushed"}})
		if err == nil {
			err = r[0].Err
		}
		return err
	},
	"lease": func(ctx context.Context, e engine.Whole) error {
		g, err := e.Lease(ctx, []engine.Want{{Queue: "orders", Max: 1, TTR: time.Minute, Remote: true}})
		if err == nil && len(g.Queues[0].Messages) > 0 && g.Queues[0].Messages[0].Key != "pushed" {
			err = errors.New("it leases " + g.Queues[0].Messages[0].Key)
		}
		return err
	},
	"cancel": func(ctx context.Context, e engine.Whole) error {
		errs, err := e.Cancel(ctx, []engine.Ref{{Queue: "orders", Key: "spam"}})
		if err == nil && !errors.Is(errs[0], engine.ErrNotFound) {
			err = errors.Join(errors.New("it finds what is not there"), errs[0])
		}
		return err
	},
	"reschedule": func(ctx context.Context, e engine.Whole) error {
		_, err := e.Reschedule(ctx, engine.Ref{Queue: "orders", Key: "spam"}, engine.When{In: time.Hour})
		if errors.Is(err, engine.ErrNotFound) {
			err = nil
		}
		return err
	},
	"pause": func(ctx context.Context, e engine.Whole) error { return e.Pause(ctx, "orders", time.Millisecond) },
	"purge": func(ctx context.Context, e engine.Whole) error {
		_, err := e.Purge(ctx, "orders", 0)
		return err
	},
	"configure": func(ctx context.Context, e engine.Whole) error {
		_, err := e.Configure(ctx, "orders", engine.Settings{Rate: 1}, "")
		return err
	},
	"count": func(ctx context.Context, e engine.Whole) error {
		_, err := e.Queue(ctx, "orders")
		return err
	},
}

// After a failover that lost a queue, a process's cache does not lead to another queue.
func lostQueue(t *testing.T, bed Bed) {
	knows := make(map[string]engine.Whole)
	for op := range lostOps {
		knows[op] = bed.Open(t, nil)
		push(t, knows[op], engine.Message{Queue: "orders"})
	}
	bed.Lose(t)
	other := bed.Open(t, nil)
	push(t, other, engine.Message{Queue: "spam", Key: "spam"})
	for op, do := range lostOps {
		if err := soon(t, func() error { return do(patience(t), knows[op]) }); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	info, err := other.Queue(patience(t), "spam")
	ok(t, err)
	if set, _, err := other.Settings(patience(t), "spam"); err != nil || !set.Unset() || info.Ready != 1 || info.Paused {
		t.Errorf("of the other queue there is %+v, %+v, %v", info, set, err)
	}
	if got, err := other.Get(patience(t), engine.Ref{Queue: "orders", Key: "pushed"}); err != nil {
		t.Errorf("what was pushed: %+v, %v", got, err)
	}
}

// Nor does another message get an id that was lost.
func lostIDs(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	lost := push(t, e, hour(""), hour(""))
	bed.Lose(t)
	other := bed.Open(t, nil)
	there := push(t, other, hour(""), hour(""), hour(""), hour(""))
	ok(t, soon(t, func() error {
		r, err := e.Push(patience(t), []engine.Message{hour("late")})
		if err == nil {
			err = r[0].Err
		}
		return err
	}))
	for _, r := range lost {
		if errs, err := e.Cancel(patience(t), []engine.Ref{{Queue: "q", ID: r.ID}}); err != nil || !errors.Is(errs[0], engine.ErrNotFound) {
			t.Errorf("a cancel of a message that was lost: %v, %v", errs, err)
		}
	}
	for _, r := range there {
		_, err := other.Get(patience(t), engine.Ref{Queue: "q", ID: r.ID})
		ok(t, err)
	}
}
