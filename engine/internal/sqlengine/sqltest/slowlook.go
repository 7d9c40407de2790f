package sqltest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// moment is the least time of a slow look.
const moment = 20 * time.Millisecond

// slowLooks is a store with slow whole looks, as if an old snapshot were open.
type slowLooks struct {
	between
	under chan struct{}                 // receives when a look is delayed
	hold  atomic.Pointer[chan struct{}] // looks end when it is closed; nil: after a moment
}

func (d *slowLooks) Heads(ctx context.Context, from []sqlengine.LowBound) (time.Time, []sqlengine.Heads, error) {
	whole := func(f sqlengine.LowBound) bool { return f.From[sqlengine.Waiting] == codec.WholeList.Low }
	if slices.ContainsFunc(from, whole) {
		if hold := d.hold.Load(); hold == nil {
			time.Sleep(moment)
		} else {
			d.under <- struct{}{}
			select {
			case <-*hold:
			case <-ctx.Done():
				return time.Time{}, nil, ctx.Err()
			}
		}
	}
	return d.Store.Heads(ctx, from)
}

// openSlow returns an engine that knows whole looks at queue q to be slow, and that of another
// process, which has leased an old message.
func openSlow(t *testing.T, bed Bed) (e engine.Whole, d *slowLooks, other engine.Whole, held engine.Lease) {
	d = &slowLooks{under: make(chan struct{}, 1)}
	other = bed.Open(t, nil)
	push(t, other, engine.Message{Queue: "q", Key: "old", Due: engine.When{At: time.Now().Add(-time.Hour)}})
	held = lease(t, other, 1)[0]
	e = bed.Open(t, func(s sqlengine.Store) sqlengine.Store { d.Store = s; return d })
	learnSlow(t, e)
	return e, d, other, held
}

// learnSlow makes an engine see that whole looks are slow.
func learnSlow(t *testing.T, e engine.Engine) {
	push(t, e, hour("far"))
	lease(t, e, 1)
	lease(t, e, 1) // a single slow one says nothing
}

// beginLook makes an engine begin a whole look, once that is due.
func beginLook(t *testing.T, e engine.Engine, d *slowLooks) {
	t.Helper()
	for ctx := patience(t); ; ok(t, ctx.Err()) {
		lease(t, e, 1)
		select {
		case <-d.under:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// watch returns a channel that receives when an engine gives a hint.
func watch(t *testing.T, e engine.Engine) <-chan struct{} {
	hinted := make(chan struct{}, 1)
	t.Cleanup(e.Watch(func(string) {
		select {
		case hinted <- struct{}{}:
		default:
		}
	}))
	return hinted
}

// Leases do not wait for a slow whole look, and a hint follows for what it finds.
func lookWithoutWaiting(t *testing.T, bed Bed) {
	e, d, other, held := openSlow(t, bed)
	hinted := watch(t, e)
	hold := make(chan struct{})
	d.hold.Store(&hold)
	settled, err := other.Settle(patience(t), []engine.Settlement{{Token: held.Token, Do: engine.Release}})
	ok(t, err, settled[0].Err)
	beginLook(t, e, d)
	lease(t, e, 1) // and does not wait for it
	select {
	case <-hinted: // for earlier messages
	default:
	}
	d.hold.Store(nil)
	close(hold)
	select {
	case <-hinted:
	case <-patience(t).Done():
		t.Fatal("no hint for what a whole look found")
	}
	if got := lease(t, e, 1); len(got) != 1 || got[0].Key != "old" {
		t.Errorf("leased %v, want what another process released", got)
	}
}

// Nor does Close wait for a whole look.
func closeBesideSlowLook(t *testing.T, bed Bed) {
	e, d, _, _ := openSlow(t, bed)
	hold := make(chan struct{})
	d.hold.Store(&hold)
	beginLook(t, e, d)
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	select {
	case err := <-closed:
		ok(t, err)
	case <-patience(t).Done():
		t.Fatal("Close waits for a whole look")
	}
}

// A look that begins before a whole one finds something, and ends after it, does not undo that.
func lookBesideSlowLook(t *testing.T, bed Bed) {
	e, d, other, held := openSlow(t, bed)
	hinted := watch(t, e)
	hold, next := make(chan struct{}), make(chan struct{})
	defer close(next)
	d.hold.Store(&hold)
	settled, err := other.Settle(patience(t), []engine.Settlement{{Token: held.Token, Do: engine.Release}})
	ok(t, err, settled[0].Err)
	beginLook(t, e, d)
	d.open = func() {
		select {
		case <-hinted: // for earlier messages
		default:
		}
		d.hold.Store(&next)
		time.Sleep(moment) // so that the look counts as slow
		close(hold)
		select {
		case <-hinted:
		case <-patience(t).Done():
		}
	}
	_, err = e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "none"}})
	ok(t, err)
	find(t, e, "old")
}
