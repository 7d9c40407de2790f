package sqltest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// clocked is a store with a shifted clock.
type clocked struct {
	sqlengine.Store
	by *atomic.Int64 // nanoseconds
}

func (c *clocked) set(now time.Time) time.Time {
	if now.IsZero() {
		return now
	}
	return now.Add(time.Duration(c.by.Load()))
}

func (c *clocked) Heads(ctx context.Context, from []sqlengine.LowBound) (time.Time, []sqlengine.Heads, error) {
	now, heads, err := c.Store.Heads(ctx, from)
	return c.set(now), heads, err
}

func (c *clocked) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	return c.Store.In(ctx, op, func(tx sqlengine.Tx) error { return do(&clockedTx{tx, c}) })
}

type clockedTx struct {
	sqlengine.Tx
	c *clocked
}

func (t *clockedTx) Open(ctx context.Context, first sqlengine.First) (sqlengine.Opened, error) {
	o, err := t.Tx.Open(ctx, first)
	o.Now = t.c.set(o.Now)
	return o, err
}

// openClocked returns an engine that makes no more whole looks, and that of another process.
// by shifts the clocks of both, or only of the other.
func openClocked(t *testing.T, bed Bed, both bool) (e, other engine.Whole, by *atomic.Int64) {
	by = new(atomic.Int64)
	d := &slowLooks{under: make(chan struct{}, 1)}
	other = bed.Open(t, func(s sqlengine.Store) sqlengine.Store { return &clocked{s, by} })
	e = bed.Open(t, func(s sqlengine.Store) sqlengine.Store {
		if d.Store = s; both {
			return &clocked{d, by}
		}
		return d
	})
	learnSlow(t, e)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	d.hold.Store(&hold)
	return e, other, by
}

// find leases until a message comes.
func find(t *testing.T, e engine.Engine, key string) {
	t.Helper()
	for ctx := patience(t); ; ok(t, ctx.Err()) {
		if got := lease(t, e, 1); len(got) == 1 {
			if got[0].Key != key {
				t.Errorf("leased %v, want %s", got, key)
			}
			return
		}
	}
}

// Looks from low bounds find what another process pushes after the clock was set back.
func clockSetBack(t *testing.T, bed Bed) {
	e, other, by := openClocked(t, bed, true)
	push(t, other, engine.Message{Queue: "q", Key: "before"})
	find(t, e, "before")
	lease(t, e, 1)
	by.Store(-int64(time.Hour))
	lease(t, e, 1) // sees it; what is pushed before that, only a whole look finds
	push(t, other, engine.Message{Queue: "q", Key: "after"})
	find(t, e, "after")
}

// They also find what another process pushes that read the time a moment ago.
func latePush(t *testing.T, bed Bed) {
	e, other, by := openClocked(t, bed, false)
	by.Store(-int64(150 * time.Millisecond))
	for i := range 3 {
		lease(t, e, 1)
		key := fmt.Sprint("late", i)
		push(t, other, engine.Message{Queue: "q", Key: key})
		find(t, e, key)
	}
}
