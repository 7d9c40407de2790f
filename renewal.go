package tarry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/coalesce"
	"github.com/tarryhq/tarry/internal/nap"
)

// keep is the keeper's goroutine. It renews the leases of running handlers when
// half of their time is over, and ends the contexts of those that lost theirs. It
// sleeps until the first lease needs it, and while nothing runs, until it is woken.
func (w *Worker) keep() {
	n := nap.New()
	defer n.Stop()
	stepped := false
	for {
		now := w.now()
		w.mu.Lock()
		if w.ended {
			w.mu.Unlock()
			return
		}
		renew := w.tend(now, stepped)
		until := w.look
		w.mu.Unlock()

		for len(renew) > 0 {
			k := min(len(renew), settleBatch)
			batch := renew[:k]
			renew = renew[k:]
			w.tasks.Go(func() { w.renew(batch) })
		}
		stepped = n.Sleep(w.wake, until)
	}
}

// lookBy makes the keeper look at t or earlier. Called with w.mu held.
func (w *Worker) lookBy(t time.Time) {
	if w.lookAt(t) {
		w.kick()
	}
}

// lookAt notes that the keeper is to look at t, and reports whether that is sooner
// than it was. Called with w.mu held.
func (w *Worker) lookAt(t time.Time) bool {
	sooner := w.look.IsZero() || t.Before(w.look)
	if sooner {
		w.look = t
	}
	return sooner
}

// The causes with which a handler's context ends when its lease is lost.
var (
	errLapsed = fmt.Errorf("%w: it could not be renewed before its deadline", ErrLeaseLost)
	errTaken  = fmt.Errorf("%w: the engine gave it up or to another", ErrLeaseLost)
)

// tend picks the leases to renew, all of them after a step of the clock, and ends
// the contexts of handlers whose lease has lapsed. One that was not begun has none:
// start looks for itself. Who has waited in line for too
// long is given back. Called with w.mu held.
func (w *Worker) tend(now time.Time, all bool) (renew []*delivery) {
	w.look = time.Time{}
	var late []*handling
	for d := w.first; d != nil; d = d.next {
		if d.waits {
			if !now.Before(d.begin) {
				late = append(late, d.h)
				continue
			}
			w.lookAt(d.begin)
		}
		if d.term.endless() || d.lost || d.lapsed || d.unsure && d.renewing {
			continue
		}
		if d.term.ended(now) && !d.unsure {
			d.lapsed = true
			if d.cancel != nil {
				d.cancel(errLapsed)
				d.lose(now, errLapsed)
			}
			continue
		}
		next := d.term.end()
		if w.renewable(d) {
			if all || d.unsure || len(d.wishes) > 0 || !now.Before(d.renew) {
				d.renewing = true
				d.asks = d.term.most(now, d.wishes)
				d.granting, d.wishes = d.wishes, nil
				renew = append(renew, d)
			} else {
				next = d.renew
			}
		}
		w.lookAt(next)
	}
	for _, h := range late {
		w.giveBackWaiting(h, now)
	}
	return renew
}

// lose tells the observer and the log that the lease was lost, once: when its handler has
// returned, if that may have settled the message itself. Called with w.mu held.
func (d *delivery) lose(now time.Time, cause error) {
	switch {
	case d.told:
	case d.tokenOut.Load():
		d.untold = true
	default:
		d.tellLoss(now.Sub(d.started), cause)
	}
}

// tellLoss is called with w.mu held.
func (d *delivery) tellLoss(ran time.Duration, cause error) {
	d.told = true
	d.w.cfg.Logger.Warn("a lease was lost while its handler ran", d.attrs(cause)...)
	d.w.observe(d.event(LeaseLost, ran, cause))
}

// renewable reports whether a lease is still worth keeping: one whose handler has
// outlived its time goes back to others when it ends.
func (w *Worker) renewable(d *delivery) bool {
	return w.c.caps.Extend && !d.renewing && (d.ctx == nil || d.ctx.Err() != context.DeadlineExceeded)
}

// renew extends leases in one call. One that cannot be reached is tried again soon,
// until the leases are over.
func (w *Worker) renew(batch []*delivery) {
	sent := w.now()
	extend := make([]engine.Settlement, len(batch))
	patience := coalesce.Timeout
	for i, d := range batch {
		extend[i] = engine.Settlement{Token: d.lease.Token, Do: engine.Extend, TTR: w.cfg.LeaseTTR}
		if d.asks > d.term.usual {
			extend[i].TTR = d.asks
		}
		patience = min(patience, max(d.term.usual/2, time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(engine.Gathered(w.sets.ctx), patience)
	out, err := w.c.eng.Settle(ctx, extend)
	cancel()
	if err != nil {
		out = failedAll(len(batch), err)
		if w.sets.ctx.Err() == nil { // else all has been settled meanwhile
			w.cfg.Logger.Warn("leases could not be renewed", "count", len(batch), "error", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, d := range batch {
		w.renewed(d, sent, out[i].Err)
	}
}

// renewed notes the engine's answer to a renewal that was asked for at sent. One that
// comes after the deadline counts all the same: the engine has decided, and keeps the
// message from others; a context that has ended stays so. Called with w.mu held.
func (w *Worker) renewed(d *delivery, sent time.Time, err error) {
	d.renewing = false
	defer d.grant(err)
	if d.next == nil && d.prev == nil && w.first != d {
		return // concluded meanwhile: its own settlement decided
	}
	switch {
	case err == nil:
		d.term = d.term.renewed(sent, d.asks)
		d.renew = d.term.due()
		d.lapsed = false
	case errors.Is(err, ErrLeaseLost):
		d.lost = true
		if d.cancel != nil {
			d.cancel(errTaken)
		}
		d.lose(w.now(), errTaken)
	default:
		d.renew = w.now().Add(max(d.term.usual/16, time.Millisecond))
	}
	if d.unsure {
		d.unsure, d.asked = false, err == nil || errors.Is(err, context.DeadlineExceeded)
		if d.one != nil { // start decides
			close(d.one.sure)
		} else {
			now := w.now()
			w.await(d, now)
			w.rouse()
			w.heed(now)
		}
	}
	switch {
	case d.lost:
	case len(d.wishes) > 0:
		w.lookBy(w.now())
	default:
		w.lookBy(d.renew)
	}
}
