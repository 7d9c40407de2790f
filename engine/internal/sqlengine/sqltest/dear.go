package sqltest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// moment is longer than an answer takes on a busy machine.
const moment = 150 * time.Millisecond

// dear is a store in which whole looks take their time, as beside an old snapshot.
type dear struct {
	between
	under chan struct{}                 // receives when one is held
	hold  atomic.Pointer[chan struct{}] // they end with that; nil: after a moment
}

func (d *dear) Heads(ctx context.Context, from []sqlengine.Floor) (time.Time, []sqlengine.Heads, error) {
	whole := func(f sqlengine.Floor) bool { return f.From[sqlengine.Waiting] == token.All.Low }
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

// openDear returns an engine that knows whole looks at queue q to take their time, and
// another process that has leased what was due there long ago.
func openDear(t *testing.T, bed Bed) (e engine.Whole, d *dear, other engine.Whole, held engine.Lease) {
	d = &dear{under: make(chan struct{}, 1)}
	other = bed.Open(t, nil)
	push(t, other, engine.Message{Queue: "q", Key: "old", Due: engine.When{At: time.Now().Add(-time.Hour)}})
	held = lease(t, other, 1)[0]
	e = bed.Open(t, func(s sqlengine.Store) sqlengine.Store { d.Store = s; return d })
	learnDear(t, e)
	return e, d, other, held
}

// learnDear has an engine see that whole looks take their time.
func learnDear(t *testing.T, e engine.Engine) {
	push(t, e, hour("far"))
	lease(t, e, 1)
	lease(t, e, 1)
}

// beginLook has an engine begin a whole look, once that is due.
func beginLook(t *testing.T, e engine.Engine, d *dear) {
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

// watch returns what has one when an engine has given a hint.
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

// Nobody waits for a whole look that takes its time, and what it finds is told.
func dearLooks(t *testing.T, bed Bed) {
	e, d, other, held := openDear(t, bed)
	hinted := watch(t, e)
	hold := make(chan struct{})
	d.hold.Store(&hold)
	settled, err := other.Settle(patience(t), []engine.Settlement{{Token: held.Token, Do: engine.Release}})
	ok(t, err, settled[0].Err)
	beginLook(t, e, d)
	lease(t, e, 1) // and does not wait for it
	select {
	case <-hinted: // of what came before
	default:
	}
	d.hold.Store(nil)
	close(hold)
	select {
	case <-hinted:
	case <-patience(t).Done():
		t.Fatal("nothing is told of what a whole look has found")
	}
	if got := lease(t, e, 1); len(got) != 1 || got[0].Key != "old" {
		t.Errorf("leased %v, want what another process has given back", got)
	}
}

// Who closes an engine does not wait for a whole look either.
func closeBesideDearLook(t *testing.T, bed Bed) {
	e, d, _, _ := openDear(t, bed)
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

// A look that began before a whole one has found something, and ends behind it, does not undo
// that.
func lookBesideDearLook(t *testing.T, bed Bed) {
	e, d, other, held := openDear(t, bed)
	hinted := watch(t, e)
	hold, next := make(chan struct{}), make(chan struct{})
	defer close(next)
	d.hold.Store(&hold)
	settled, err := other.Settle(patience(t), []engine.Settlement{{Token: held.Token, Do: engine.Release}})
	ok(t, err, settled[0].Err)
	beginLook(t, e, d)
	d.open = func() {
		select {
		case <-hinted: // of what came before
		default:
		}
		d.hold.Store(&next)
		time.Sleep(moment) // else it has not taken long
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
