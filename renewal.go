package tarry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// keep is the keeper's goroutine. It renews the leases of running handlers when
// half of their time is over, ends the contexts of those that lost theirs, and tells
// the observer what was noted under somebody's lock. It sleeps until the first lease
// needs it, and while nothing runs, until it is woken.
func (w *Worker) keep() {
	n := newNap()
	defer n.stop()
	stepped := false
	for {
		now := time.Now()
		w.mu.Lock()
		if w.ended && len(w.notices) == 0 {
			w.mu.Unlock()
			return
		}
		notices := w.notices
		w.notices = nil
		renew, lost := w.tend(now, stepped)
		until := w.look
		w.mu.Unlock()

		for _, e := range notices {
			w.observe(e)
		}
		for _, e := range lost {
			w.observe(e)
		}
		for len(renew) > 0 {
			k := min(len(renew), settleBatch)
			batch := renew[:k]
			renew = renew[k:]
			w.tasks.Go(func() { w.renew(batch) })
		}
		if len(notices) > 0 {
			continue // others may have come
		}
		stepped = n.sleep(w.wake, until)
	}
}

// lookBy makes the keeper look at t or earlier. Called with w.mu held.
func (w *Worker) lookBy(t time.Time) {
	if w.look.IsZero() || t.Before(w.look) {
		w.look = t
		w.kick()
	}
}

// The causes with which a handler's context ends when its lease is lost.
var (
	errLapsed = fmt.Errorf("%w: it could not be renewed before its deadline", ErrLeaseLost)
	errTaken  = fmt.Errorf("%w: the engine gave it up or to another", ErrLeaseLost)
)

// tend picks the leases to renew, all of them after a step of the clock, and ends
// the contexts of handlers whose lease has lapsed. Called with w.mu held.
func (w *Worker) tend(now time.Time, all bool) (renew []*delivery, lost []Event) {
	w.look = time.Time{}
	for d := w.first; d != nil; d = d.next {
		if d.deadline.IsZero() || d.lost || d.lapsed {
			continue
		}
		if !now.Before(d.deadline) {
			d.lapsed = true
			if d.cancel != nil {
				d.cancel(errLapsed)
			}
			lost = append(lost, d.event(LeaseLost, now.Sub(d.started), errLapsed))
			continue
		}
		next := d.deadline
		if w.renewable(d) {
			if all || !now.Before(d.renew) {
				d.renewing = true
				renew = append(renew, d)
			} else {
				next = d.renew
			}
		}
		if w.look.IsZero() || next.Before(w.look) {
			w.look = next
		}
	}
	return renew, lost
}

// renewable reports whether a lease is still worth keeping: one whose handler has
// outlived its time goes back to others when it ends.
func (w *Worker) renewable(d *delivery) bool {
	return w.c.caps.Extend && !d.renewing && (d.ctx == nil || d.ctx.Err() != context.DeadlineExceeded)
}

// renew extends leases in one call. One that cannot be reached is tried again soon,
// until the leases are over.
func (w *Worker) renew(batch []*delivery) {
	now := time.Now()
	extend := make([]engine.Settlement, len(batch))
	patience := coalesceTimeout
	for i, d := range batch {
		extend[i] = engine.Settlement{Token: d.lease.Token, Do: engine.Extend, TTR: w.cfg.TTR}
		patience = min(patience, max(d.length/2, time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(w.sets.ctx, patience)
	out, err := w.c.eng.Settle(ctx, extend)
	cancel()
	if err != nil {
		out = failedAll(len(batch), err)
		w.cfg.Logger.Warn("leases could not be renewed", "count", len(batch), "error", err)
	}
	var lost []Event
	w.mu.Lock()
	for i, d := range batch {
		d.renewing = false
		if w.renewed(d, now, out[i].Err) {
			lost = append(lost, d.event(LeaseLost, time.Since(d.started), errTaken))
		}
	}
	w.mu.Unlock()
	for _, e := range lost {
		w.observe(e)
	}
}

// renewed notes the engine's answer to a renewal that was asked for at now, and
// reports whether it says that a running handler has lost its lease. Called with
// w.mu held.
func (w *Worker) renewed(d *delivery, now time.Time, err error) (lost bool) {
	switch {
	case d.next == nil && d.prev == nil && w.first != d:
		return false // concluded meanwhile: its own settlement decided
	case err == nil:
		d.deadline = now.Add(d.length)
		d.renew = now.Add(d.length / 2)
		d.lapsed = false
	case errors.Is(err, ErrLeaseLost):
		lost = !d.lapsed
		d.lost = true
		if d.cancel != nil {
			d.cancel(errTaken)
		}
		return lost
	default:
		d.renew = time.Now().Add(max(d.length/16, time.Millisecond))
	}
	w.lookBy(d.renew)
	return false
}
