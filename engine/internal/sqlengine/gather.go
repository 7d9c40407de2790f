package sqlengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// gathering is a call whose items are of several callers. All are carried out in one
// transaction, which does not wait long: a transaction of somebody's that stays open, and has
// locked what one of the items needs, is not to hold up the others. When it comes to that,
// the call is halved until what is held is found out. That is kept apart from then on, and
// its callers are told to come again.
type gathering[In, Out any] struct {
	e     *Engine
	in    []In
	needs func(*In) stall // what others may hold
	call  func([]In, Patience) ([]Out, error)
	fail  func(*In, error) Out

	out   []Out
	found int // how many that others hold were found out
}

// Of what is known to be held so much is tried in one call, and so much is found out anew.
const (
	triesMost = 4
	foundMost = 8
)

// gather carries items out by call. What an item needs that others may hold needs tells; the
// zero stall: nothing. fail makes an error the answer of one.
func gather[In, Out any](ctx context.Context, e *Engine, in []In, needs func(*In) stall, call func([]In, Patience) ([]Out, error), fail func(*In, error) Out) ([]Out, error) {
	if len(in) == 0 || !engine.IsGathered(ctx) || e.cfg.later != nil {
		return call(in, Endless)
	}
	g := &gathering[In, Out]{e: e, in: in, needs: needs, call: call, fail: fail}
	all := make([]int, len(in))
	for i := range all {
		all[i] = i
	}
	if e.stalls.none() {
		out, err := g.patiently(ctx, in)
		if !errors.Is(err, ErrBusy) {
			return out, err
		}
		g.out = make([]Out, len(in))
		g.halve(all)
		return g.out, nil
	}
	g.out = make([]Out, len(in))
	g.apart(ctx, all)
	return g.out, nil
}

// patiently carries items out in one transaction, which waits briefly.
func (g *gathering[In, Out]) patiently(ctx context.Context, in []In) (out []Out, err error) {
	pause := attempt.Pause{Least: time.Millisecond, Most: 16 * time.Millisecond}
	for start := time.Now(); ; {
		out, err = g.call(in, Brief)
		if !errors.Is(err, ErrBusy) || time.Since(start) >= BriefWait || !pause.Wait(ctx) {
			return out, err
		}
	}
}

// apart carries out what nobody is known to hold, and then tries some of the rest, each apart.
func (g *gathering[In, Out]) apart(ctx context.Context, all []int) {
	var free []int
	held := make(map[stall][]int)
	for _, i := range all {
		what := g.needs(&g.in[i])
		if known, _ := g.e.stalls.of(what); known {
			held[what] = append(held[what], i)
		} else {
			free = append(free, i)
		}
	}
	if len(free) > 0 && !g.carryOut(free, func(in []In) ([]Out, error) { return g.patiently(ctx, in) }) {
		g.halve(free)
	}
	tries := 0
	for what, items := range held {
		if _, try := g.e.stalls.of(what); try && tries < triesMost {
			tries++
			if g.carryOut(items, g.once) {
				g.e.stalls.drop(what)
				continue
			}
			g.e.stalls.add(what)
		}
		g.refuse(items)
	}
}

// halve finds the locked ones among items, and carries out the rest. It tries even a single
// item: a database may only have been slow.
func (g *gathering[In, Out]) halve(items []int) {
	if g.carryOut(items, g.once) {
		return
	}
	what := g.needs(&g.in[items[0]])
	if !slices.ContainsFunc(items, func(i int) bool { return g.needs(&g.in[i]) != what }) {
		if g.found++; what != (stall{}) {
			g.e.stalls.add(what)
		}
		g.refuse(items)
		return
	}
	for _, half := range [][]int{items[:len(items)/2], items[len(items)/2:]} {
		var open []int
		for _, i := range half {
			if held, _ := g.e.stalls.of(g.needs(&g.in[i])); held || g.found >= foundMost {
				g.refuse([]int{i})
			} else {
				open = append(open, i)
			}
		}
		if len(open) > 0 {
			g.halve(open)
		}
	}
}

func (g *gathering[In, Out]) once(in []In) ([]Out, error) { return g.call(in, Least) }

// carryOut carries items out by call, and reports whether nobody was in the way.
func (g *gathering[In, Out]) carryOut(items []int, call func([]In) ([]Out, error)) bool {
	in := make([]In, len(items))
	for k, i := range items {
		in[k] = g.in[i]
	}
	out, err := call(in)
	if errors.Is(err, ErrBusy) {
		return false
	}
	for k, i := range items {
		if err != nil {
			g.out[i] = g.fail(&g.in[i], err)
		} else {
			g.out[i] = out[k]
		}
	}
	return true
}

// refuse has the callers of items come again.
func (g *gathering[In, Out]) refuse(items []int) {
	for _, i := range items {
		g.out[i] = g.fail(&g.in[i], engine.ErrBusy)
	}
}
