package sqlengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// gathering is a call with items of several callers. One transaction carries them out and does
// not wait long: an open transaction that locks what one item needs must not delay the others.
// If it has to wait, the call is halved until the locked items are found. From then on these
// are tried separately, and their callers are told to try again.
type gathering[In, Out any] struct {
	e     *Engine
	in    []In
	needs func(*In) lockKey // what others may have locked
	call  func([]In, LockTimeout) ([]Out, error)
	fail  func(*In, error) Out

	out   []Out
	found int // locked items found
}

// How many known locks a call tries again, and how many new ones it searches for.
const (
	triesMost = 4
	foundMost = 8
)

// gather carries items out by call. needs returns what an item needs that others may have
// locked; the zero lockKey: nothing. fail turns an error into the result of an item.
func gather[In, Out any](ctx context.Context, e *Engine, in []In, needs func(*In) lockKey, call func([]In, LockTimeout) ([]Out, error), fail func(*In, error) Out) ([]Out, error) {
	if len(in) == 0 || !engine.IsGathered(ctx) || e.cfg.later != nil {
		return call(in, NoTimeout)
	}
	g := &gathering[In, Out]{e: e, in: in, needs: needs, call: call, fail: fail}
	all := make([]int, len(in))
	for i := range all {
		all[i] = i
	}
	if e.knownLocks.none() {
		out, err := g.briefly(ctx, in)
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

// briefly carries items out in one transaction that waits for locks only briefly.
func (g *gathering[In, Out]) briefly(ctx context.Context, in []In) (out []Out, err error) {
	pause := attempt.Pause{Least: time.Millisecond, Most: 16 * time.Millisecond}
	for start := time.Now(); ; {
		out, err = g.call(in, BriefTimeout)
		if !errors.Is(err, ErrBusy) || time.Since(start) >= BriefMost || !pause.Wait(ctx) {
			return out, err
		}
	}
}

// apart carries out the items that are not known to be locked, and then tries some of the rest
// separately.
func (g *gathering[In, Out]) apart(ctx context.Context, all []int) {
	var free []int
	held := make(map[lockKey][]int)
	for _, i := range all {
		what := g.needs(&g.in[i])
		if known, _ := g.e.knownLocks.of(what); known {
			held[what] = append(held[what], i)
		} else {
			free = append(free, i)
		}
	}
	if len(free) > 0 && !g.carryOut(free, func(in []In) ([]Out, error) { return g.briefly(ctx, in) }) {
		g.halve(free)
	}
	tries := 0
	for what, items := range held {
		if _, try := g.e.knownLocks.of(what); try && tries < triesMost {
			tries++
			if g.carryOut(items, g.once) {
				g.e.knownLocks.drop(what)
				continue
			}
			g.e.knownLocks.add(what)
		}
		g.refuse(items)
	}
}

// halve finds the locked items among some, and carries out the others. It tries even a single
// item again: the database may only have been slow.
func (g *gathering[In, Out]) halve(items []int) {
	if g.carryOut(items, g.once) {
		return
	}
	what := g.needs(&g.in[items[0]])
	if !slices.ContainsFunc(items, func(i int) bool { return g.needs(&g.in[i]) != what }) {
		if g.found++; what != (lockKey{}) {
			g.e.knownLocks.add(what)
		}
		g.refuse(items)
		return
	}
	for _, half := range [][]int{items[:len(items)/2], items[len(items)/2:]} {
		var open []int
		for _, i := range half {
			if held, _ := g.e.knownLocks.of(g.needs(&g.in[i])); held || g.found >= foundMost {
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

func (g *gathering[In, Out]) once(in []In) ([]Out, error) { return g.call(in, LeastTimeout) }

// carryOut carries items out by call, and reports whether none was locked.
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

// refuse tells the callers of items to try again.
func (g *gathering[In, Out]) refuse(items []int) {
	for _, i := range items {
		g.out[i] = g.fail(&g.in[i], engine.ErrBusy)
	}
}
