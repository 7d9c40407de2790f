package tarry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/coalesce"
	"github.com/tarryhq/tarry/internal/nap"
)

// keep is the keeper's goroutine. It renews the leases of running handlers when
// half of their time is over, and ends the contexts of those that lost theirs. It
// sleeps until the first delivery needs it, and while there is none, until it is woken.
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
		until := w.kept.next()
		if w.lineBy.Before(until) {
			until = w.lineBy
		}
		w.look = until
		w.mu.Unlock()

		for batch := range slices.Chunk(renew, settleBatch) {
			w.tasks.Go(func() { w.renew(batch) })
		}
		if until == never {
			until = time.Time{}
		}
		stepped = n.Sleep(w.wake, until)
	}
}

// lookBy makes the keeper look at t or earlier. Called with w.mu held.
func (w *Worker) lookBy(t time.Time) {
	if t.Before(w.look) {
		w.look = t
		w.kick()
	}
}

// lookAt makes the keeper look at a delivery at t. Called with w.mu held.
func (w *Worker) lookAt(d *delivery, t time.Time) {
	w.kept.move(d, t)
	w.lookBy(t)
}

// The causes with which a handler's context ends when its lease is lost.
var (
	errLapsed = fmt.Errorf("%w: it could not be renewed before its deadline", ErrLeaseLost)
	errTaken  = fmt.Errorf("%w: the engine gave it up or to another", ErrLeaseLost)
)

// renewal is what is asked for a lease.
type renewal struct {
	d      *delivery
	usual  time.Duration // of its term
	length time.Duration
	wishes []extension // of the handler
}

// tend picks the leases to renew, all of them after a step of the clock, and ends
// the contexts of handlers whose lease has lapsed. What has waited in line for too long
// is given back. With leases that are due for renewal go those that soon will be, so that
// many need few calls. Called with w.mu held.
func (w *Worker) tend(now time.Time, all bool) (renew []renewal) {
	w.tendLines(now)
	until, ahead := now, time.Duration(0)
	if all {
		until = never
	}
	for _, d := range w.kept.take(until) {
		if r, ok := w.see(d, now, all); ok {
			renew = append(renew, r)
			ahead = max(ahead, r.usual/renewAhead)
		}
	}
	if ahead == 0 {
		return renew
	}
	for _, d := range w.kept.take(now.Add(ahead)) {
		if r, ok := w.see(d, now, !now.Before(d.renew.Add(-d.term.usual/renewAhead))); ok {
			renew = append(renew, r)
		}
	}
	return renew
}

// A lease lasts a usual time after each renewal. One that others need renewed is renewed
// with them a renewAhead-th of that early; a call that failed is repeated after as long;
// beside one without an answer another is made after a renewAgain-th.
const (
	renewAhead = 16
	renewAgain = 8
)

// errNoAnswer stands for the answer to a renewal beside which another is made.
var errNoAnswer = errors.New("there is no answer yet")

// see looks at a delivery that was taken from the agenda, puts it back, and tells how to
// renew its lease, if it is to be renewed. early: although it is not due. One that was not
// begun has no context: start looks for itself. Called with w.mu held.
func (w *Worker) see(d *delivery, now time.Time, early bool) (r renewal, ok bool) {
	w.looks++
	switch {
	case !w.minds(d):
	case d.term.ended(now) && d.stage != unsure:
		d.hold = lapsed
		if d.stage >= running {
			d.end(now, errLapsed)
		}
	case w.renewable(d) && (early || d.stage == unsure || len(d.wishes) > 0 || !now.Before(d.renew)):
		d.renewing = true
		r, ok = renewal{d, d.term.usual, d.term.most(now, d.wishes), d.wishes}, true
		d.wishes = nil
	}
	if !d.over.IsZero() && !now.Before(d.over.Add(stuckAfter)) {
		d.stick(now)
	}
	w.kept.add(d, w.nextLook(d))
	return r, ok
}

// minds reports whether the lease of a delivery needs looking after. Called with w.mu held.
func (w *Worker) minds(d *delivery) bool {
	return !d.term.endless() && d.hold == held && !(d.stage == unsure && d.renewing)
}

// nextLook is when the keeper has to look at a delivery. Called with w.mu held.
func (w *Worker) nextLook(d *delivery) time.Time {
	t := never
	if w.minds(d) {
		t = d.term.end()
		if w.renewable(d) && d.renew.Before(t) {
			t = d.renew
		}
	}
	if late := d.over.Add(stuckAfter); !d.over.IsZero() && d.stage != stuck && late.Before(t) {
		t = late
	}
	return t
}

// end ends the context of a handler whose lease is lost. Called with w.mu held.
func (d *delivery) end(now time.Time, cause error) {
	d.cancel(cause)
	if d.over.IsZero() || now.Before(d.over) {
		d.over = now
	}
	d.lose(now, cause)
}

// lose tells the observer and the log that the lease was lost, once. If the handler may
// have settled the message itself, finish does. Called with w.mu held.
func (d *delivery) lose(now time.Time, cause error) {
	if !d.told && !d.tokenOut.Load() {
		d.tellLoss(now.Sub(d.started), cause)
	}
}

// tellLoss is called with w.mu held.
func (d *delivery) tellLoss(ran time.Duration, cause error) {
	d.told = true
	d.w.trouble.Note(lostLease, d.lease.Queue, d.attrs(cause)...)
	d.w.observe(d.event(LeaseLost, ran, cause))
}

// renewable reports whether a lease is still worth keeping: that of a handler which has
// outlived its time, or is stuck, runs out. Called with w.mu held.
func (w *Worker) renewable(d *delivery) bool {
	return w.c.caps.Extend && !d.renewing && d.stage != stuck && (d.ctx == nil || d.ctx.Err() != context.DeadlineExceeded)
}

// renew extends leases in one call. Beside a call that has no answer soon others are made,
// so that one that hangs costs no lease.
func (w *Worker) renew(batch []renewal) {
	sent := w.now()
	extend := make([]engine.Settlement, len(batch))
	usual := 2 * coalesce.Timeout
	for i, r := range batch {
		extend[i] = engine.Settlement{Token: r.d.lease.Token, Do: engine.Extend, TTR: w.cfg.LeaseTTR}
		if r.length > r.usual {
			extend[i].TTR = r.length
		}
		usual = min(usual, max(r.usual, 2*time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(engine.Gathered(w.sets.ctx), usual/2)
	defer cancel()
	again := time.AfterFunc(usual/renewAgain, func() {
		w.renewed(batch, sent, failedAll(len(batch), errNoAnswer), func(d *delivery) bool { return d.stage != unsure })
	})
	out, err := w.c.eng.Settle(ctx, extend)
	repeated := !again.Stop()
	if err != nil {
		out = failedAll(len(batch), err)
		if w.sets.ctx.Err() == nil { // else all has been settled meanwhile
			w.trouble.Note(unrenewed, "", "count", len(batch), "error", err)
		}
	}
	w.renewed(batch, sent, out, func(d *delivery) bool { return err == nil || !repeated || d.stage == unsure })
}

// renewed takes in what the engine says of renewals that were asked for at sent, of those
// deliveries that it is of meaning for.
func (w *Worker) renewed(batch []renewal, sent time.Time, out []engine.Settled, of func(*delivery) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range batch {
		if of(r.d) {
			w.answered(r, sent, out[i].Err)
		}
	}
}

// answered notes the engine's answer to a renewal. One that
// comes after the deadline counts all the same: the engine has decided, and keeps the
// message from others; a context that has ended stays so. Called with w.mu held.
func (w *Worker) answered(r renewal, sent time.Time, err error) {
	d := r.d
	d.renewing = false
	defer grant(r.wishes, err)
	if d.place == 0 {
		return // concluded meanwhile: its own settlement decided
	}
	switch now := w.now(); {
	case err == nil:
		if t := d.term.renewed(sent, r.length); t.end().After(d.term.end()) {
			d.term = t
		}
		if d.renew = d.term.due(); d.hold == lapsed {
			d.hold = held
		}
	case errors.Is(err, ErrLeaseLost):
		if d.hold = lost; d.stage >= running {
			d.end(now, errTaken)
		} else {
			d.lose(now, errTaken)
		}
	case err == errNoAnswer: // it has waited long enough
		d.renew = now
	default:
		d.renew = now.Add(max(d.term.usual/renewAhead, time.Millisecond))
	}
	if d.stage == unsure {
		if d.stage = waiting; err == nil || errors.Is(err, context.DeadlineExceeded) {
			d.stage = confirmed
		}
		if d.one != nil { // start decides
			close(d.one.sure)
		} else {
			now := w.now()
			w.await(d, now)
			w.rouse()
			w.heed(now)
		}
	}
	if d.place == 0 {
		return // given back
	}
	t := w.nextLook(d)
	if len(d.wishes) > 0 && d.hold != lost {
		t = w.now()
	}
	w.lookAt(d, t)
}
