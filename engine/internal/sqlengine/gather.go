package sqlengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// lockKey is what an item needs and others may have locked: a message, a key, or a whole queue.
type lockKey struct {
	id         engine.ID
	queue, key string
}

// gathering is a call with items of several callers. One transaction carries them out and does
// not wait long: an open transaction that locks what one item needs must not delay the others.
// If it has to wait, the call is halved until the locked items are found. Their callers are
// told to try again.
type gathering[In, Out any] struct {
	in    []In
	needs func(*In) lockKey // what others may have locked
	call  func([]In, LockTimeout) ([]Out, error)
	fail  func(*In, error) Out

	out    []Out
	locked map[lockKey]bool
	found  int // locked items found
}

// foundMost is how many locked items a call searches for. Callers of the rest try again.
const foundMost = 32

// gather carries items out by call. needs returns what an item needs that others may have
// locked; the zero lockKey: nothing. fail turns an error into the result of an item.
func gather[In, Out any](ctx context.Context, e *Engine, in []In, needs func(*In) lockKey, call func([]In, LockTimeout) ([]Out, error), fail func(*In, error) Out) ([]Out, error) {
	if len(in) == 0 || !engine.IsGathered(ctx) || e.cfg.later != nil {
		return call(in, NoTimeout)
	}
	pause := calls.Pause{Least: time.Millisecond, Most: 16 * time.Millisecond}
	for start := time.Now(); ; {
		out, err := call(in, BriefTimeout)
		if !errors.Is(err, ErrBusy) {
			return out, err
		}
		if time.Since(start) >= BriefMost || !pause.Wait(ctx) {
			break
		}
	}
	g := &gathering[In, Out]{in: in, needs: needs, call: call, fail: fail, out: make([]Out, len(in)), locked: make(map[lockKey]bool)}
	all := make([]int, len(in))
	for i := range all {
		all[i] = i
	}
	g.halve(all)
	return g.out, nil
}

// halve finds the locked items among some, and carries out the others. It tries even a single
// item again: the database may only have been slow.
func (g *gathering[In, Out]) halve(items []int) {
	if g.carryOut(items) {
		return
	}
	what := g.needs(&g.in[items[0]])
	if !slices.ContainsFunc(items, func(i int) bool { return g.needs(&g.in[i]) != what }) {
		if g.found++; what != (lockKey{}) {
			g.locked[what] = true
		}
		g.refuse(items)
		return
	}
	for _, half := range [][]int{items[:len(items)/2], items[len(items)/2:]} {
		var open []int
		for _, i := range half {
			if g.found >= foundMost || g.locked[g.needs(&g.in[i])] {
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

// carryOut carries items out without waiting for locks, and reports whether none was locked.
func (g *gathering[In, Out]) carryOut(items []int) bool {
	in := make([]In, len(items))
	for k, i := range items {
		in[k] = g.in[i]
	}
	out, err := g.call(in, LeastTimeout)
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
