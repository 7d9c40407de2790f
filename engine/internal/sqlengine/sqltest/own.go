package sqltest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// How many goroutines work in the tests with owners, and how many calls each makes.
const (
	owners   = 6
	ownDeeds = 30
)

// own lets owners work with engines.
func own(t *testing.T, engines []engine.Whole, meanwhile func()) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var tasks sync.WaitGroup
	l := newLedger()
	for i := range owners {
		o := &owner{engines: engines, ledger: l, ctx: t.Context(), rand: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint(i)}
		tasks.Go(func() {
			for range ownDeeds {
				if err := o.do(); err != nil {
					t.Error(err)
					return
				}
			}
			if err := o.redrive(); err != nil {
				t.Error(err)
			}
		})
	}
	meanwhile()
	tasks.Wait()
}

// handleAll lets an engine handle messages until it says that there are none for long.
func handleAll(t *testing.T, e engine.Engine) {
	t.Helper()
	for ctx := patience(t); ; ok(t, ctx.Err()) {
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 100, TTR: time.Minute, Remote: true}})
		ok(t, err)
		leases, next := g.Queues[0].Messages, g.Queues[0].NextDue
		if len(leases) == 0 && next.Sub(g.Now) > 10*time.Second {
			return
		}
		settled, err := e.Settle(ctx, acksOf(leases))
		ok(t, err)
		for i := range settled {
			ok(t, settled[i].Err)
		}
	}
}

// left describes the messages that are ready or leased.
func left(t *testing.T, e engine.Whole) (all []string) {
	t.Helper()
	for _, state := range []engine.State{engine.Ready, engine.Leased} {
		page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: state, Limit: 10})
		ok(t, err)
		for _, m := range page.Messages {
			all = append(all, fmt.Sprintf("%v: %s, due %v, attempt %d, priority %d", m.State, m.Key, m.Due, m.Attempt, m.Priority))
		}
	}
	return all
}

// A process that looks from low bounds finds all that it wrote itself, even concurrently,
// without a whole look.
func ownWrites(t *testing.T, bed Bed) {
	e, d, other, held := openSlow(t, bed)
	settled, err := other.Settle(t.Context(), acksOf([]engine.Lease{held}))
	ok(t, err, settled[0].Err)
	hold := make(chan struct{})
	defer close(hold)
	d.hold.Store(&hold)
	own(t, []engine.Whole{e}, func() {})
	handleAll(t, e)
	if all := left(t, other); len(all) > 0 {
		t.Errorf("it does not find all that it has written: %q", all)
	}
}

// Each process finds what several write concurrently, by whole looks at the latest, and no
// message is leased twice.
func severalWrite(t *testing.T, bed Bed) {
	e, _, other, held := openSlow(t, bed)
	third := bed.Open(t, func(s sqlengine.Store) sqlengine.Store {
		return &slowLooks{between: between{Store: s}}
	})
	own(t, []engine.Whole{e, other, third}, func() {
		for i := range 4 {
			tx := bed.Begin(t, other)
			push(t, tx, engine.Message{Queue: "q", Key: fmt.Sprint("tx", i)}, engine.Message{Queue: "q", Key: fmt.Sprint("tx ranked", i), Terms: engine.Terms{Priority: new(uint32(1))}})
			time.Sleep(time.Duration(i) * 200 * time.Millisecond)
			ok(t, tx.Commit())
			ok(t, third.Pause(t.Context(), "q", 10*time.Millisecond))
		}
	})
	settled, err := other.Settle(t.Context(), []engine.Settlement{{Token: held.Token, Do: engine.Release}})
	ok(t, err, settled[0].Err)
	ctx := patience(t)
	for all := []string{""}; len(all) > 0; all = left(t, other) {
		if handleAll(t, e); ctx.Err() != nil {
			t.Fatalf("it does not find all that there is: %q", all)
		}
	}
}
