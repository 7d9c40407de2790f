package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// atomics is how many messages are pushed as one.
const atomics = 600

// asOne is an engine to which messages are pushed as one.
type asOne struct {
	*testing.T
	*diskengine.Engine
}

func newAsOne(t *testing.T) *asOne {
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, RetryFor: -1, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 128 << 10, OnHeap: true}}.open(t)
	t.Cleanup(func() { must(t, e.Close()) })
	return &asOne{t, e}
}

func atomicMessages(change func(m *engine.Message, i int)) []engine.Message {
	msgs := make([]engine.Message, atomics)
	for i := range msgs {
		if msgs[i] = message("q", fmt.Sprint(i), 0); change != nil {
			change(&msgs[i], i)
		}
	}
	return msgs
}

// push pushes them, and returns the error.
func (a *asOne) push() error {
	r, err := a.PushAtomic(a.Context(), atomicMessages(nil))
	if err == nil {
		for i := range r {
			if r[i].Err != nil || r[i].Outcome != engine.Created || i > 0 && r[i].ID <= r[i-1].ID {
				a.Fatalf("%d: %+v behind %+v", i, r[i], r[max(0, i-1)])
			}
		}
	}
	return err
}

func holdsReady(t *testing.T, e *diskengine.Engine, want int) {
	t.Helper()
	i, err := e.Queue(t.Context(), "q")
	if err != nil || i.Ready != int64(want) {
		t.Errorf("%d are counted, not %d: %v", i.Ready, want, err)
	}
	listed, after := 0, ""
	for more := true; more; more = after != "" {
		page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 1000, After: after})
		if err != nil {
			t.Fatal(err)
		}
		listed, after = listed+len(page.Messages), page.Next
	}
	if listed != want {
		t.Errorf("%d are listed, not %d", listed, want)
	}
}

func (a *asOne) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// TestManyAsOne pushes many as one where some of them, or one at the end, meet others: what comes of it
// is what comes of few.
func TestManyAsOne(t *testing.T) {
	finishOne := func(t *testing.T, a *asOne) {
		m := message("q", "300", 0)
		m.Remember = time.Hour
		a.must(pushAll(t, a.Engine, m))
		settle(t, a.Engine, lease(t, a.Engine, "q", 1), engine.Ack)
	}
	for name, test := range map[string]struct {
		before func(t *testing.T, a *asOne)
		change func(m *engine.Message, i int)
		err    error
		left   int
	}{
		"all new": {left: atomics},
		"the last is there": {
			before: func(t *testing.T, a *asOne) { a.must(pushAll(t, a.Engine, message("q", fmt.Sprint(atomics-1), 0))) },
			err:    engine.ErrExists, left: 1,
		},
		"the last is there in an sstable": {
			before: func(t *testing.T, a *asOne) {
				a.must(pushAll(t, a.Engine, message("q", fmt.Sprint(atomics-1), 0)))
				a.must(a.Flush(t.Context()))
			},
			err: engine.ErrExists, left: 1,
		},
		"all are there in an sstable, and replaced": {
			before: func(t *testing.T, a *asOne) {
				a.must(a.push())
				a.must(a.Flush(t.Context()))
			},
			change: func(m *engine.Message, _ int) { m.OnConflict = engine.Replace },
			left:   atomics,
		},
		"one is leased": {
			before: func(t *testing.T, a *asOne) {
				a.must(pushAll(t, a.Engine, message("q", "300", 0)))
				lease(t, a.Engine, "q", 1)
			},
			change: func(m *engine.Message, _ int) { m.OnConflict = engine.Replace },
			err:    engine.ErrLeased,
		},
		"one is remembered": {
			before: finishOne,
			err:    engine.ErrExists,
		},
		"one was remembered, and begins anew": {
			before: finishOne,
			change: func(m *engine.Message, _ int) { m.OnConflict = engine.Replace },
			left:   atomics,
		},
		"one twice": {
			change: func(m *engine.Message, i int) {
				if i == atomics-1 {
					m.Key = "0"
				}
			},
			err: engine.ErrExists,
		},
		"one twice, replaced": {
			change: func(m *engine.Message, i int) {
				if i == atomics-1 {
					m.Key, m.OnConflict = "0", engine.Replace
				}
			},
			left: atomics - 1,
		},
		"one expires at once": {
			change: func(m *engine.Message, i int) {
				if i == 300 {
					m.Due, m.ExpireAfter = engine.When{At: time.Now().Add(-time.Hour)}, time.Minute
				}
			},
			left: atomics - 1,
		},
		"too many for the queue": {
			before: func(t *testing.T, a *asOne) {
				_, err := a.Configure(t.Context(), "q", engine.Settings{MaxPending: atomics - 1}, "")
				a.must(err)
			},
			err: engine.ErrLimit,
		},
		"one is there, of more than the queue may have": {
			before: func(t *testing.T, a *asOne) {
				a.must(pushAll(t, a.Engine, message("other", "a", 0), message("other", "b", 0)))
				_, err := a.Configure(t.Context(), "other", engine.Settings{MaxPending: 1}, "")
				a.must(err)
			},
			change: func(m *engine.Message, i int) {
				if i == 300 {
					m.Queue, m.Key, m.OnConflict = "other", "a", engine.Keep
				}
			},
			left: atomics - 1,
		},
		"as many as the queue may have": {
			before: func(t *testing.T, a *asOne) {
				_, err := a.Configure(t.Context(), "q", engine.Settings{MaxPending: atomics}, "")
				a.must(err)
			},
			left: atomics,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsOne(t)
			if test.before != nil {
				test.before(t, a)
			}
			r, err := a.PushAtomic(t.Context(), atomicMessages(test.change))
			if !errors.Is(err, test.err) {
				t.Errorf("pushed: %v, want %v", err, test.err)
			}
			if refused := 0; err != nil && r != nil {
				for i := range r {
					if r[i].Err != nil {
						refused++
					}
				}
				if refused != 1 {
					t.Errorf("%d are refused", refused)
				}
			}
			l, err := a.Queue(t.Context(), "q")
			if err != nil || int(l.Ready) != test.left && name != "one expires at once" {
				t.Errorf("%d are left, want %d: %v", l.Ready, test.left, err)
			}
			leased := 0
			for some := lease(t, a.Engine, "q", 1000); len(some) > 0; some = lease(t, a.Engine, "q", 1000) {
				leased += len(some)
			}
			if leased != test.left {
				t.Errorf("%d are leased, want %d", leased, test.left)
			}
			a.must(a.Sound())
		})
	}
}
