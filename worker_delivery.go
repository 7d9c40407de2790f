package tarry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// delivery is one leased message on its way through the worker.
type delivery struct {
	w     *Worker
	h     *handling
	hand  *hand // nil: its goroutine ends
	one   *one  // not nil: no worker runs it, but whoever claimed it
	lease engine.Lease

	due     time.Time // by our own clock
	started time.Time // guarded by Worker.mu
	took    time.Duration

	err    error
	settle engine.Settlement

	named    EventKind   // what its outcome is called where the settlement does not tell: Dropped, Died
	retold   bool        // the engine was told its result before, and what came of that is not known
	tokenOut atomic.Bool // its handler has the token, and may settle the message itself

	// Guarded by Worker.mu.
	behind   *delivery // in line
	stage    stage     // of the way to its handler
	hold     hold      // on its lease
	renewing bool      // a renewal is under way
	told     bool      // the observer knows that the lease was lost
	place    int32     // in the agenda, from 1; 0: it has ended
	look     time.Time // when the keeper looks at it
	begin    time.Time // when it goes back if it is still there
	ctx      context.Context
	cancel   context.CancelCauseFunc // nil: not started
	term     term                    // of the lease; once concluded nobody writes it
	renew    time.Time               // when to renew the lease
	over     time.Time               // when its context has ended, or will; zero: that is not known
	wishes   []extension             // of the handler, for the next renewal
}

// stage is how far a delivery is on the way to its handler:
//
//	waiting   → unsure     it came so late that the lease may be over
//	unsure    → confirmed  a renewal was granted, or took longer than the lease lasts
//	unsure    → waiting    the renewal failed
//	waiting   → running    a hand took it, while the lease was held
//	confirmed → running    likewise
//	waiting   → again      a hand took it, while its handler ran here already
//	confirmed → again      likewise
//	running   → stuck      the handler did not return within 5 s of the end of its context
//
// From any of them it ends: when its handler returns, or when it is given back.
type stage uint8

const (
	waiting stage = iota
	unsure
	confirmed
	again
	running // from here on it has a context
	stuck
)

// hold is what is known of a lease. What has lapsed is held again when a renewal that was
// under way is granted after all; what is lost stays lost.
type hold uint8

const (
	held   hold = iota
	lapsed      // it was not renewed before the deadline
	lost        // the engine says that it is another's
)

// tellRoom has the dispatcher know how many messages can be started soon. Called with
// w.mu held whenever that has changed.
func (w *Worker) tellRoom() {
	free := w.cfg.Concurrency - w.running - w.queued
	ahead := 0
	if w.queued <= w.low() {
		ahead = w.pace.lead()
	}
	ahead = free + min(ahead, maxUnsaid-w.unsaid)
	if w.deaf() {
		ahead = 0
	}
	w.room.Free.Store(int64(free))
	w.room.Ahead.Store(int64(ahead))
}

// low is how many stand in line when more are asked for. Called with w.mu held.
func (w *Worker) low() int { return w.pace.lead() / 2 }

// deliver takes in leases for which there was room and which were asked for at sent. What
// may have lapsed on its way is renewed before.
func (w *Worker) deliver(leases []engine.Lease, engineNow, sent time.Time) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var h *handling
	w.pace.answered(now, sent, w.cfg.Concurrency)
	for i := range leases {
		if q := leases[i].Queue; h == nil || h.queue != q {
			h = w.queues[q]
			if h == nil { // the other side does not keep to what it was asked
				w.c.log.Error("tarry: a message came that was not asked for; its lease will lapse", "queue", q, "id", leases[i].ID)
				continue
			}
		}
		d := &delivery{w: w, h: h, lease: leases[i]}
		d.due = w.c.dispatch.Local(d.lease.Due, engineNow, now)
		d.term = termOf(d.lease.Deadline, engineNow, sent)
		w.enter(d, now)
		w.queued++
		h.queued++
		h.free.Add(-1)
		if d.stage != unsure {
			w.await(d, now)
		}
	}
	w.rouse()
	w.heed(now)
	w.tellRoom()
}

// enter takes up a delivery among those that are kept. Called with w.mu held.
func (w *Worker) enter(d *delivery, now time.Time) {
	if !d.term.endless() {
		d.renew = d.term.end()
		if w.c.caps.Extend {
			d.renew = d.term.due()
			if d.term.doubtful(now) {
				d.stage, d.renew = unsure, now
			}
		}
	}
	w.cfg.Retry.fill(&d.lease.Policy)
	t := w.nextLook(d)
	w.kept.add(d, t)
	w.lookBy(t)
}

// hand is a goroutine that runs handlers, one after the other. It is kept while the
// worker runs, because the stacks of new ones would have to grow each time.
type hand struct {
	w    *Worker
	next chan *delivery // from rouse
	then *delivery      // what it has taken itself when it had finished another
}

// rouse has a hand take up who is next in line, when there is a slot. A hand that
// comes rouses another before it begins: one at a time, because hands that are at work
// take up the others by themselves when their handlers are quick. Called with w.mu held.
func (w *Worker) rouse() {
	if w.rousing {
		return
	}
	d := w.next()
	if d == nil {
		return
	}
	w.rousing = true
	if n := len(w.idle); n > 0 {
		d.hand = w.idle[n-1]
		w.idle = w.idle[:n-1]
	} else {
		d.hand = &hand{w: w, next: make(chan *delivery, 1)}
		go d.hand.run()
	}
	d.hand.next <- d
}

func (h *hand) run() {
	for d := range h.next {
		h.w.mu.Lock()
		h.w.rousing = false
		d.start()
		h.w.rouse()
		freed := h.w.untold && h.w.turn.first == nil
		h.w.untold = h.w.untold && !freed
		h.w.tellRoom()
		h.w.mu.Unlock()
		if freed {
			h.w.c.dispatch.Freed()
		}
		for d != nil {
			h.then = nil
			d.work()
			d = h.then
		}
	}
}

// errGoexit stands for a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// ErrHandlerTimeout is the cause with which the context of a handler ends when its
// time is over; it is a context.DeadlineExceeded.
var ErrHandlerTimeout = fmt.Errorf("the handler's time is over: %w", context.DeadlineExceeded)

// work runs the handler, which start has let begin or not.
func (d *delivery) work() {
	if d.one == nil && d.suspect() {
		d.w.awaitSaid()
		d.w.mu.Lock()
		d.startNow()
		d.w.mu.Unlock()
	}
	ctx := d.ctx
	if ctx == nil {
		switch {
		case d.stage == again:
			d.settle = d.putOff()
		case d.hasty():
			d.settle = engine.Settlement{Token: d.lease.Token, Do: engine.Retry, Reason: errHasty.Error()}
			d.err = errHasty
		default:
			d.settle = release(d)
		}
		d.w.finish(d)
		return
	}
	if d.h.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, d.h.timeout, ErrHandlerTimeout)
		defer stop()
		d.w.mu.Lock()
		d.ctx = ctx
		d.w.mu.Unlock()
	}
	if d.one == nil {
		d.w.c.meter.started(d.lease.Queue, d.started.Sub(d.due))
		if d.w.cfg.Observer != nil {
			d.w.observeAlone(d.event(Started, 0, nil))
		}
	}
	returned := false
	defer func() {
		if !returned { // Goexit, maybe with a panic on its way
			d.hand = nil
			d.conclude(errGoexit)
		}
	}()
	err := d.call(ctx)
	returned = true
	d.conclude(err)
}

// call calls the handler. Its panic is an error.
func (d *delivery) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			failure := &PanicError{Value: p, Stack: debug.Stack()}
			err = failure
			d.w.cfg.Logger.Error("a handler panicked", append(d.attrs(err), slog.String("stack", string(failure.Stack)))...)
		}
	}()
	return d.h.handle(ctx, d)
}

func stack() slog.Attr { return slog.String("stack", string(debug.Stack())) }

// release gives a message back as it came.
func release(d *delivery) engine.Settlement {
	return engine.Settlement{Token: d.lease.Token, Do: engine.Release}
}

// start starts a delivery, but for a suspect, which work starts when it may. Called with
// w.mu held.
func (d *delivery) start() {
	if d.one != nil || !d.suspect() {
		d.startNow()
	}
}

// startNow gives the handler its context, unless the worker drains already, the message is
// in hand in this process, or the lease may be over: then another may have decided on the
// message, and it goes back as it came. Called with w.mu held.
func (d *delivery) startNow() {
	w := d.w
	now := w.now()
	if w.draining || d.held(now) != nil {
		return
	}
	if d.stage = again; !w.c.inHand.take(messageID{d.h.queue, d.lease.ID}) {
		return
	}
	d.stage, d.started = running, now
	d.ctx, d.cancel = context.WithCancelCause(w.base)
	if d.h.timeout > 0 {
		d.over = now.Add(d.h.timeout)
		if t := d.over.Add(stuckAfter); t.Before(d.look) {
			w.lookAt(d, t)
		}
	}
}

// errHasty is why a message is retried whose handler was never begun.
var errHasty = errors.New("the lease was over before the handler could begin, although it was to be renewed; the time to run is too short")

// hasty reports whether a lease that was to be renewed before its handler began is
// over again. Given back, its message could go round for ever.
func (d *delivery) hasty() bool {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.stage == confirmed && !d.w.draining && d.hold != lost
}

// held returns why the lease cannot be relied on any more, if so. Called with
// Worker.mu held.
func (d *delivery) held(now time.Time) error {
	switch {
	case d.hold == lost:
		return errTaken
	case d.hold == lapsed || d.term.doubtful(now):
		return errLapsed
	}
	return nil
}

// proceed returns why nothing more of the user's may begin for this delivery, if
// so. ctx is what middleware made of its context.
func (d *delivery) proceed(ctx context.Context) error {
	for _, c := range [...]context.Context{d.ctx, ctx} {
		if c.Err() != nil {
			return context.Cause(c)
		}
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.held(d.w.now())
}

// conclude decides what becomes of the message once its handler has returned.
func (d *delivery) conclude(err error) {
	d.took = d.w.now().Sub(d.started)
	d.err = err
	d.settle = settlement(d.lease.Token, err)
	if d.settle.Do == byHandler {
		d.err = nil
	}
	if d.settle.Do == engine.Retry && d.settle.When == nil && d.interrupted(err) {
		d.settle = release(d)
	}
	if d.settle.Do == engine.Retry && d.w.cfg.Retry.given() {
		d.settle, d.named = retried(d.settle, &d.lease.Info)
	}
	d.w.finish(d)
	d.cancel(errConcluded)
}

// interrupted reports whether a handler gave up for no fault of its own or of its
// message: since the worker drains, or who claimed it left.
func (d *delivery) interrupted(err error) bool {
	defer func() { _ = recover() }() // of the error's methods, which are the user's
	cause := context.Cause(d.ctx)
	return (cause == errDrained || d.w.base.Err() == context.Canceled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, cause))
}

// finish frees the slot of a delivery, has its result told to the engine, and its hand
// go on with who is next in line.
func (w *Worker) finish(d *delivery) {
	if d.failed() {
		d.reportFailure()
	}
	w.mu.Lock()
	w.kept.remove(d)
	w.running--
	if d.stage >= running {
		w.pace.finished(d.took)
		w.c.inHand.leave(messageID{d.h.queue, d.lease.ID})
	}
	if d.stage == stuck {
		w.observe(d.event(Unstuck, d.took, nil))
	}
	h := d.h
	h.running--
	h.free.Add(1)
	w.turn.add(h)
	if d.stage >= running && d.hold != held && !d.told && d.settle.Do != byHandler {
		d.tellLoss(d.took, errSelfSettled)
	}
	switch {
	case d.settle.Do == byHandler:
		w.observe(d.event(SelfSettled, d.took, nil))
		d.tell(engine.Settled{})
	case d.hold != lost:
		w.unsaid++
		w.sets.add(d)
	default:
		d.report(d.unsettled(errTaken))
		d.tell(engine.Settled{Err: errTaken})
	}
	switch hand := d.hand; {
	case hand == nil: // its goroutine ends
		w.rouse()
	case w.draining:
		close(hand.next)
	default:
		if next := w.next(); next != nil {
			next.hand, hand.then = hand, next
			next.start()
			w.rouse()
		} else {
			w.idle = append(w.idle, hand)
		}
	}
	// While somebody in line can have the slot nobody else is told of it.
	freed := h.slots > 0 || w.queued <= w.low() || w.turn.first == nil
	w.untold = !freed
	w.checkIdle()
	w.tellRoom()
	w.mu.Unlock()
	if freed {
		w.c.dispatch.Freed()
	}
}

// settled is told by the settler what became of a result.
func (w *Worker) settled(ds []*delivery, out []engine.Settled) {
	for i, d := range ds {
		if d.retold && !d.told && !d.tokenOut.Load() && errors.Is(out[i].Err, ErrLeaseLost) {
			out[i].Err = ErrUnconfirmed
		}
	}
	w.mu.Lock()
	w.unsaid -= len(ds)
	w.said += len(ds)
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
	full := w.unsaid+len(ds) >= maxUnsaid
	for i := range out {
		if err := out[i].Err; err != nil && !errors.Is(err, ErrLeaseLost) && err != ErrUnconfirmed {
			w.failed++
		}
	}
	w.tellRoom()
	w.mu.Unlock()
	if full {
		w.c.dispatch.Freed()
	}
	for i, d := range ds {
		if out[i].Err != nil {
			err := d.unsettled(out[i].Err)
			d.report(err)
			switch {
			case out[i].Err == ErrUnconfirmed:
				w.trouble.Note(unconfirmed, d.lease.Queue, d.attrs(err)...)
			case !d.told:
				w.trouble.Note(unsettled, d.lease.Queue, d.attrs(err)...)
			}
		}
		if d.one != nil {
			w.mu.Lock()
			d.tell(out[i])
			w.mu.Unlock()
		}
	}
	for i, d := range ds {
		if kind := d.outcome(out[i]); kind == Died || kind == Buried {
			w.died(d)
		}
	}
	if w.cfg.Observer == nil && !w.c.meter.handles() {
		return
	}
	some := someEvents.Get().(*[tellAtOnce]Event)
	events := some[:0]
	for i, d := range ds {
		if kind := d.outcome(out[i]); kind != 0 {
			err := d.err
			if out[i].Err != nil {
				err = d.unsettled(out[i].Err)
			}
			e := d.event(kind, d.took, err)
			if kind == Retried || kind == Snoozed {
				e.Until = out[i].Until
			}
			if len(events) == tellAtOnce {
				w.observe(events...)
				events = events[:0]
			}
			events = append(events, e)
		}
	}
	w.observe(events...)
	clear(some[:min(len(ds), tellAtOnce)])
	someEvents.Put(some)
}

// tellAtOnce is how many events are told at a time.
const tellAtOnce = 16

var someEvents = sync.Pool{New: func() any { return new([tellAtOnce]Event) }}

// errSelfSettled is why a result came too late of a handler that may have settled its
// message itself.
var errSelfSettled = fmt.Errorf("%w: a handler that has settled its message itself returns tarry.Settled()", ErrLeaseLost)

// unsettled is why the engine could not be told the result.
func (d *delivery) unsettled(err error) error {
	if d.tokenOut.Load() && errors.Is(err, ErrLeaseLost) {
		err = errSelfSettled
	}
	return fail("settle", Ref{Queue: d.lease.Queue, ID: d.lease.ID, Key: d.lease.Key}, err)
}

// outcome names what became of a settled delivery; 0: nothing that was not told
// before.
func (d *delivery) outcome(s engine.Settled) EventKind {
	switch {
	case errors.Is(s.Err, ErrLeaseLost):
		if d.told {
			return 0
		}
		return LeaseLost
	case s.Err == ErrUnconfirmed:
		return Unconfirmed
	case s.Err != nil:
		return EngineFailed
	}
	switch d.settle.Do {
	case engine.Ack:
		if d.named == Dropped {
			return Dropped
		}
		return Acked
	case engine.Snooze:
		return Snoozed
	case engine.Release:
		return Released
	case engine.Bury:
		if d.named == Died {
			return Died
		}
		return Buried
	}
	if s.State == engine.Dead {
		return Died
	}
	return Retried
}
