package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/dispatch"
)

// deliveries are those of a worker that have not ended, in no order. Guarded by Worker.mu.
type deliveries []*Delivery

// never is the look time of a delivery that needs none.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func (all *deliveries) add(d *Delivery) {
	*all = append(*all, d)
	d.place = int32(len(*all))
}

// remove removes a delivery. The last one takes its place.
func (all *deliveries) remove(d *Delivery) {
	last := len(*all) - 1
	moved := (*all)[last]
	(*all)[d.place-1], moved.place = moved, d.place
	(*all)[last], d.place = nil, 0
	*all = (*all)[:last]
}

// keep is the keeper goroutine. It renews each lease after half of its time, and ends the
// context of a handler when its lease is lost. It sleeps until a delivery or a line needs a
// look, or until it is woken.
func (w *Worker) keep() {
	n := dispatch.NewNap()
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
		until := w.lineBy
		for _, d := range w.deliveries {
			if d.look.Before(until) {
				until = d.look
			}
		}
		w.keeperWakes = until
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

// lookBy makes the keeper wake at t or earlier. Called with w.mu held.
func (w *Worker) lookBy(t time.Time) {
	if t.Before(w.keeperWakes) {
		w.keeperWakes = t
		w.kick()
	}
}

// lookAt makes the keeper look at a delivery at t. Called with w.mu held.
func (w *Worker) lookAt(d *Delivery, t time.Time) {
	d.look = t
	w.lookBy(t)
}

// Causes of a handler's context that ended because its lease was lost.
var (
	errLapsed = fmt.Errorf("%w: it could not be renewed before its deadline", engine.ErrLeaseLost)
	errTaken  = fmt.Errorf("%w: the engine ended it, or gave the message to another worker", engine.ErrLeaseLost)
)

// renewal is a request to extend a lease.
type renewal struct {
	d          *Delivery
	usual      time.Duration // the usual length of its term
	length     time.Duration // the length to ask for
	extensions []extension   // by the handler
}

// tend picks the leases to renew, ends the contexts of handlers with a lapsed lease, and
// releases what has waited in line for too long. With all, after a step of the clock, it
// picks all leases. To save calls, it adds leases that are nearly due to those that are due.
// Called with w.mu held.
func (w *Worker) tend(now time.Time, all bool) (renew []renewal) {
	w.tendLines(now)
	ahead := time.Duration(0)
	for _, d := range w.deliveries {
		if !all && now.Before(d.look) {
			continue
		}
		if r, ok := w.see(d, now, all); ok {
			renew = append(renew, r)
			ahead = max(ahead, r.usual/renewAhead)
		}
	}
	if ahead == 0 {
		return renew
	}
	for _, d := range w.deliveries {
		if now.Add(ahead).Before(d.look) {
			continue
		}
		if r, ok := w.see(d, now, !now.Before(d.renew.Add(-d.term.usual/renewAhead))); ok {
			renew = append(renew, r)
		}
	}
	return renew
}

// Fractions of a lease's usual length. A lease joins the renewal of others if its own is due
// within 1/renewAhead; a failed call is repeated after that time. When a call has no answer
// after 1/renewAgain, a second one is made beside it.
const (
	renewAhead = 16
	renewAgain = 8
)

// errNoAnswer stands for the missing answer to a renewal, when a second one is made beside
// it.
var errNoAnswer = errors.New("there is no answer yet")

// see checks a delivery, and sets its next look. It returns the renewal if one is due, or with
// early even if it is not due yet. A delivery that has not
// started has no context to end: start checks its lease itself. Called with w.mu held.
func (w *Worker) see(d *Delivery, now time.Time, early bool) (r renewal, ok bool) {
	w.checks++
	switch {
	case !w.minds(d):
	case d.term.ended(now) && d.stage != unsure:
		d.hold = lapsed
		if d.stage >= running {
			d.end(now, errLapsed)
		}
	case w.renewable(d) && (early || d.stage == unsure || len(d.extensions) > 0 || !now.Before(d.renew)):
		d.renewing = true
		r, ok = renewal{d, d.term.usual, d.term.renewalLength(now, d.extensions), d.extensions}, true
		d.extensions = nil
	}
	if !d.over.IsZero() && !now.Before(d.over.Add(stuckAfter)) {
		d.stick(now)
	}
	d.look = w.nextLook(d)
	return r, ok
}

// minds reports whether the keeper must watch the lease of a delivery. Called with w.mu
// held.
func (w *Worker) minds(d *Delivery) bool {
	return !d.term.endless() && d.hold == held && !(d.stage == unsure && d.renewing)
}

// nextLook returns when the keeper must look at a delivery. Called with w.mu held.
func (w *Worker) nextLook(d *Delivery) time.Time {
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

// end ends the handler's context after the lease was lost. Called with w.mu held.
func (d *Delivery) end(now time.Time, cause error) {
	d.cancel(cause)
	if d.over.IsZero() || now.Before(d.over) {
		d.over = now
	}
	d.lose(now, cause)
}

// lose reports once that the lease was lost. If the handler may have settled the message
// itself, finish decides whether to report it. Called with w.mu held.
func (d *Delivery) lose(now time.Time, cause error) {
	if !d.lossReported && !d.tokenOut.Load() {
		d.reportLoss(now.Sub(d.started), cause)
	}
}

// reportLoss logs that a lease was lost, and tells the observer. Called with w.mu held.
func (d *Delivery) reportLoss(ran time.Duration, cause error) {
	d.lossReported = true
	d.w.trouble.Note(lostLease, d.lease.Queue, d.attrs(cause)...)
	d.w.observe(d.event(LeaseLost, ran, cause))
}

// renewable reports whether a lease may be renewed now. The lease of a handler that has
// timed out or is stuck is left to lapse. Called with w.mu held.
func (w *Worker) renewable(d *Delivery) bool {
	return w.cfg.Caps.Extend && !d.renewing && d.stage != stuck && (d.ctx == nil || d.ctx.Err() != context.DeadlineExceeded)
}

// renew extends leases in one call. If the call has no answer soon, further calls renew its
// leases, so that a call that hangs costs no lease.
func (w *Worker) renew(batch []renewal) {
	sent := w.now()
	extend := make([]engine.Settlement, len(batch))
	usual := 2 * calls.Timeout
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
		w.renewed(batch, sent, calls.FailedAll(len(batch), errNoAnswer), func(d *Delivery) bool { return d.stage != unsure })
	})
	out, err := w.cfg.Engine.Settle(ctx, extend)
	repeated := !again.Stop()
	if err != nil {
		out = calls.FailedAll(len(batch), err)
		if w.sets.ctx.Err() == nil { // else everything has been settled meanwhile
			w.trouble.Note(unrenewed, "", "count", len(batch), "error", err)
		}
	}
	w.renewed(batch, sent, out, func(d *Delivery) bool { return err == nil || !repeated || d.stage == unsure })
}

// renewed notes the engine's answers to renewals requested at sent. It leaves out the
// deliveries for which of returns false.
func (w *Worker) renewed(batch []renewal, sent time.Time, out []engine.Settled, of func(*Delivery) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range batch {
		if of(r.d) {
			w.answered(r, sent, out[i].Err)
		}
	}
}

// answered notes the engine's answer to a renewal. A granted one counts even after the
// deadline, because the engine has kept the message from other workers; but a context that
// has ended stays ended. Called with w.mu held.
func (w *Worker) answered(r renewal, sent time.Time, err error) {
	d := r.d
	d.renewing = false
	defer answerExtensions(r.extensions, err)
	if d.place == 0 {
		return // finished meanwhile: its settlement decides
	}
	switch now := w.now(); {
	case err == nil:
		if t := d.term.renewed(sent, r.length); t.end().After(d.term.end()) {
			d.term = t
		}
		if d.renew = d.term.due(); d.hold == lapsed {
			d.hold = held
		}
	case errors.Is(err, engine.ErrLeaseLost):
		if d.hold = lost; d.stage >= running {
			d.end(now, errTaken)
		} else {
			d.lose(now, errTaken)
		}
	case err == errNoAnswer: // send another now
		d.renew = now
	default:
		d.renew = now.Add(max(d.term.usual/renewAhead, time.Millisecond))
	}
	if d.stage == unsure {
		if d.stage = waiting; err == nil || errors.Is(err, context.DeadlineExceeded) {
			d.stage = confirmed
		}
		if d.claim != nil { // start decides
			close(d.claim.sure)
		} else {
			now := w.now()
			w.await(d, now)
			w.wakeRunner()
			w.watchLines(now)
		}
	}
	if d.place == 0 {
		return // released
	}
	t := w.nextLook(d)
	if len(d.extensions) > 0 && d.hold != lost {
		t = w.now()
	}
	w.lookAt(d, t)
}
