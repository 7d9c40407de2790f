package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Delivery is a leased message in the worker.
type Delivery struct {
	w      *Worker
	h      *Handling
	runner *runner  // nil: its goroutine ends
	claim  *claimed // not nil: Topic.Claim runs it
	lease  engine.Lease

	due     time.Time // by our own clock
	started time.Time // guarded by Worker.mu
	took    time.Duration

	err    error
	settle engine.Settlement

	panicked bool        // its handler has
	named    Kind        // its outcome, if the settlement does not tell: Dropped, Died
	resent   bool        // its result was sent before, and the answer was lost
	tokenOut atomic.Bool // the handler has the token, and may settle the message itself

	// Guarded by Worker.mu.
	stage        stage     // on the way to its handler
	hold         hold      // on the lease
	renewing     bool      // a renewal is under way
	lossReported bool      // the loss of the lease has been reported
	place        int32     // in Worker.deliveries, from 1; 0: it has ended
	look         time.Time // when the keeper checks it
	begin        time.Time // when it is released if it still waits
	ctx          context.Context
	cancel       context.CancelCauseFunc // nil: not started
	term         term                    // of the lease; not written once the delivery has ended
	renew        time.Time               // when to renew the lease
	over         time.Time               // when its context ended, or will; zero: unknown
	extensions   []extension             // of the handler, pending
}

// stage is how far a delivery is on the way to its handler:
//
//	waiting   → unsure          it came so late that the lease may be over
//	unsure    → confirmed       a renewal was granted, or took longer than the lease lasts
//	unsure    → waiting         the renewal failed
//	waiting   → running         a runner took it, while the lease was held
//	confirmed → running         likewise
//	waiting   → alreadyRunning  a runner took it, while its handler ran here already
//	confirmed → alreadyRunning  likewise
//	running   → stuck           the handler did not return within 5 s of the end of its context
//
// It may end in any stage: when its handler returns, or when it is released.
type stage uint8

const (
	waiting stage = iota
	unsure
	confirmed
	alreadyRunning
	running // from here on it has a context
	stuck
)

// hold is what is known of a lease. A lapsed lease is held again if a renewal under way is
// still granted. A lost lease stays lost.
type hold uint8

const (
	held   hold = iota
	lapsed      // not renewed before the deadline
	lost        // the engine says that it has ended, or that another worker has it
)

// updateRoom tells the dispatcher how many messages can be started soon. Called with w.mu
// held whenever that changes.
func (w *Worker) updateRoom() {
	free := w.cfg.Concurrency - w.running - w.queued
	ahead := 0
	if w.queued <= w.low() {
		ahead = w.pace.lead()
	}
	ahead = free + min(ahead, maxUnconfirmed-w.unconfirmed)
	if w.observerBehind() {
		ahead = 0
	}
	w.room.Free.Store(int64(free))
	w.room.Ahead.Store(int64(ahead))
}

// low returns the length of the line below which more is leased. Called with w.mu held.
func (w *Worker) low() int { return w.pace.lead() / 2 }

// deliver takes leases that were requested at sent. A lease that may have lapsed on its way
// is renewed before its handler starts.
func (w *Worker) deliver(leases []engine.Lease, engineNow, sent time.Time) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var h *Handling
	w.pace.answered(now, sent, w.cfg.Concurrency)
	for i := range leases {
		if q := leases[i].Queue; h == nil || h.Queue != q {
			h = w.queues[q]
			if h == nil { // a faulty engine or server
				w.cfg.Logger.Error("tarry: received a message of a queue that was not requested; its lease will lapse", "queue", q, "id", leases[i].ID)
				continue
			}
		}
		d := &Delivery{w: w, h: h, lease: leases[i]}
		d.due = w.cfg.Dispatch.Local(d.lease.Due, engineNow, now)
		d.term = termOf(d.lease.Deadline, engineNow, sent)
		w.enter(d, now)
		w.queued++
		h.queued++
		h.free.Add(-1)
		if d.stage != unsure {
			w.await(d, now)
		}
	}
	w.wakeRunner()
	w.watchLines(now)
	w.updateRoom()
}

// enter adds a delivery to those that the keeper watches. Called with w.mu held.
func (w *Worker) enter(d *Delivery, now time.Time) {
	if !d.term.endless() {
		d.renew = d.term.end()
		if w.cfg.Caps.Extend {
			d.renew = d.term.due()
			if d.term.doubtful(now) {
				d.stage, d.renew = unsure, now
			}
		}
	}
	w.cfg.Retry.fill(&d.lease.Policy)
	d.look = w.nextLook(d)
	w.deliveries.add(d)
	w.lookBy(d.look)
}

// runner is a goroutine that runs handlers one after the other. It lives as long as the
// worker, because a new goroutine would have to grow its stack each time.
type runner struct {
	w    *Worker
	next chan *Delivery // from wakeRunner
	then *Delivery      // the next one, which it took itself on finishing another
}

// wakeRunner gives the next delivery in line to a runner, if there is a slot. A woken
// runner wakes the next one before it starts its handler. Runners are woken one at a time,
// because with quick handlers the busy ones empty the line by themselves. Called with w.mu
// held.
func (w *Worker) wakeRunner() {
	if w.waking {
		return
	}
	d := w.next()
	if d == nil {
		return
	}
	w.waking = true
	if n := len(w.idle); n > 0 {
		d.runner = w.idle[n-1]
		w.idle = w.idle[:n-1]
	} else {
		d.runner = &runner{w: w, next: make(chan *Delivery, 1)}
		go d.runner.run()
	}
	d.runner.next <- d
}

func (h *runner) run() {
	for d := range h.next {
		h.w.mu.Lock()
		h.w.waking = false
		d.start()
		h.w.wakeRunner()
		freed := h.w.freedPending && len(h.w.turn) == 0
		h.w.freedPending = h.w.freedPending && !freed
		h.w.updateRoom()
		h.w.mu.Unlock()
		if freed {
			h.w.cfg.Dispatch.Freed()
		}
		for d != nil {
			h.then = nil
			d.work()
			d = h.then
		}
	}
}

// errGoexit is the error of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// ErrHandlerTimeout is the cause of a handler's context after its timeout.
var ErrHandlerTimeout = fmt.Errorf("the handler's time is over: %w", context.DeadlineExceeded)

// work runs the handler, unless start decided against it.
func (d *Delivery) work() {
	if d.claim == nil && d.suspect() {
		d.w.awaitConfirmed()
		d.w.mu.Lock()
		d.startNow()
		d.w.mu.Unlock()
	}
	ctx := d.ctx
	if ctx == nil {
		switch {
		case d.stage == alreadyRunning:
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
	if d.h.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, d.h.Timeout, ErrHandlerTimeout)
		defer stop()
		d.w.mu.Lock()
		d.ctx = ctx
		d.w.mu.Unlock()
	}
	if d.claim == nil {
		if began := d.w.cfg.Began; began != nil {
			began(d.lease.Queue, d.started.Sub(d.due))
		}
		if d.w.cfg.Observer != nil {
			d.w.observeAlone(d.event(Started, 0, nil))
		}
	}
	returned := false
	defer func() {
		if !returned { // Goexit, perhaps during a panic
			d.runner = nil
			d.conclude(errGoexit)
		}
	}()
	err := d.call(ctx)
	returned = true
	d.conclude(err)
}

// call runs the handler, and turns a panic into an error.
func (d *Delivery) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			trace := debug.Stack()
			err, d.panicked = d.w.cfg.Panicked(p, trace), true
			d.w.cfg.Logger.Error("a handler panicked", append(d.attrs(err), slog.String("stack", string(trace)))...)
		}
	}()
	return d.h.Handle(ctx, d)
}

func stack() slog.Attr { return slog.String("stack", string(debug.Stack())) }

// release returns the settlement that makes a message ready again, unchanged.
func release(d *Delivery) engine.Settlement {
	return engine.Settlement{Token: d.lease.Token, Do: engine.Release}
}

// start starts a delivery, unless it is a suspect; work starts those. Called with w.mu
// held.
func (d *Delivery) start() {
	if d.claim != nil || !d.suspect() {
		d.startNow()
	}
}

// startNow creates the handler's context, unless the worker drains, the handler still runs
// in this process, or the lease may be over. In these cases the message is released or
// snoozed. Called with w.mu held.
func (d *Delivery) startNow() {
	w := d.w
	now := w.now()
	if w.draining || d.held(now) != nil {
		return
	}
	if d.stage = alreadyRunning; !w.cfg.InHand.take(messageID{d.h.Queue, d.lease.ID}, d) {
		return
	}
	d.stage, d.started = running, now
	d.ctx, d.cancel = context.WithCancelCause(w.base)
	if d.h.Timeout > 0 {
		d.over = now.Add(d.h.Timeout)
		if t := d.over.Add(stuckAfter); t.Before(d.look) {
			w.lookAt(d, t)
		}
	}
}

// errHasty is why hasty retries a message if its handler never started.
var errHasty = errors.New("the lease ended before the handler could start, in spite of a renewal; the time to run is too short")

// hasty reports whether a lease that was renewed before its handler started is over again.
// Such a message must not be released, or it could go round for ever.
func (d *Delivery) hasty() bool {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.stage == confirmed && !d.w.draining && d.hold != lost
}

// held returns why the lease can no longer be relied on, or nil. Called with Worker.mu
// held.
func (d *Delivery) held(now time.Time) error {
	switch {
	case d.hold == lost:
		return errTaken
	case d.hold == lapsed || d.term.doubtful(now):
		return errLapsed
	}
	return nil
}

// Proceed returns why no more user code may start for this delivery, or nil. ctx is the
// context that middleware passed.
func (d *Delivery) Proceed(ctx context.Context) error {
	for _, c := range [...]context.Context{d.ctx, ctx} {
		if c.Err() != nil {
			return context.Cause(c)
		}
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.held(d.w.now())
}

// conclude decides the settlement once the handler has returned.
func (d *Delivery) conclude(err error) {
	d.took = d.w.now().Sub(d.started)
	d.err = err
	d.settle = Settlement(d.lease.Token, err)
	if d.settle.Do == ByHandler {
		d.err = nil
	}
	if d.settle.Do == engine.Retry && d.settle.When == nil && d.interrupted(err) {
		d.settle = release(d)
	}
	if d.settle.Do == engine.Retry && d.w.cfg.Retry.given() {
		d.settle, d.named = retried(d.settle, &d.lease.Info)
	}
	d.w.finish(d)
	d.cancel(errHandlerReturned)
}

// interrupted reports whether a handler gave up because the worker drains or the caller of
// Claim left, not because of a failure.
func (d *Delivery) interrupted(err error) bool {
	defer func() { _ = recover() }() // the error's methods are user code
	cause := context.Cause(d.ctx)
	return (cause == errDrained || d.w.base.Err() == context.Canceled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, cause))
}

// finish frees the slot of a delivery, passes its result to the settler, and gives its
// runner the next delivery in line.
func (w *Worker) finish(d *Delivery) {
	if d.failed() {
		d.reportFailure()
	}
	w.mu.Lock()
	w.deliveries.remove(d)
	w.running--
	if d.stage >= running {
		w.pace.finished(d.took)
		w.cfg.InHand.leave(messageID{d.h.Queue, d.lease.ID})
	}
	if d.stage == stuck {
		w.observe(d.event(Unstuck, d.took, nil))
	}
	h := d.h
	h.running--
	h.free.Add(1)
	w.addTurn(h)
	if d.stage >= running && d.hold != held && !d.lossReported && d.settle.Do != ByHandler {
		d.reportLoss(d.took, errSelfSettled)
	}
	switch {
	case d.settle.Do == ByHandler:
		w.observe(d.event(SelfSettled, d.took, nil))
		d.answerClaim(engine.Settled{})
	case d.hold != lost:
		w.unconfirmed++
		w.sets.add(d)
	default:
		d.report(d.unsettled(errTaken))
		d.answerClaim(engine.Settled{Err: errTaken})
	}
	switch runner := d.runner; {
	case runner == nil: // its goroutine ends
		w.wakeRunner()
	case w.draining:
		close(runner.next)
	default:
		if next := w.next(); next != nil {
			next.runner, runner.then = runner, next
			next.start()
			w.wakeRunner()
		} else {
			w.idle = append(w.idle, runner)
		}
	}
	// A delivery in line takes the slot before the dispatcher learns of it.
	freed := h.Slots > 0 || w.queued <= w.low() || len(w.turn) == 0
	w.freedPending = !freed
	w.checkIdle()
	w.updateRoom()
	w.mu.Unlock()
	if freed {
		w.cfg.Dispatch.Freed()
	}
}

// settled is called by the settler with the engine's answers.
func (w *Worker) settled(ds []*Delivery, out []engine.Settled) {
	failed := 0
	for i, d := range ds {
		switch err := out[i].Err; {
		case err == nil:
		case !errors.Is(err, engine.ErrLeaseLost):
			failed++
		case d.resent && !d.lossReported && !d.tokenOut.Load():
			out[i].Err = ErrUnconfirmed
		}
	}
	w.mu.Lock()
	w.unconfirmed -= len(ds)
	w.confirmed += len(ds)
	w.failed += failed
	w.progress.Broadcast()
	full := w.unconfirmed+len(ds) >= maxUnconfirmed
	w.updateRoom()
	w.mu.Unlock()
	if full {
		w.cfg.Dispatch.Freed()
	}
	var events []Event
	for i, d := range ds {
		kind, err := d.outcome(out[i]), d.err
		if out[i].Err != nil {
			err = d.unsettled(out[i].Err)
			d.report(err)
			switch {
			case out[i].Err == ErrUnconfirmed:
				w.trouble.Note(unconfirmed, d.lease.Queue, d.attrs(err)...)
			case !d.lossReported:
				w.trouble.Note(unsettled, d.lease.Queue, d.attrs(err)...)
			}
		}
		if d.claim != nil {
			w.mu.Lock()
			d.answerClaim(out[i])
			w.mu.Unlock()
		}
		if kind == Died || kind == Buried {
			w.died(d)
		}
		if kind != 0 && (w.cfg.Observer != nil || w.cfg.Handled != nil) {
			e := d.event(kind, d.took, err)
			if kind == Retried || kind == Snoozed {
				e.Until = out[i].Until
			}
			events = append(events, e)
		}
	}
	w.observe(events...)
}

// errSelfSettled is the error of a result if the lease was lost, and the handler may have
// settled its message itself.
var errSelfSettled = fmt.Errorf("%w: a handler that has settled its message itself returns tarry.Settled()", engine.ErrLeaseLost)

// unsettled returns why a result could not be settled.
func (d *Delivery) unsettled(err error) error {
	if d.tokenOut.Load() && errors.Is(err, engine.ErrLeaseLost) {
		err = errSelfSettled
	}
	return calls.Fail("settle", engine.Ref{Queue: d.lease.Queue, ID: d.lease.ID, Key: d.lease.Key}, err)
}

// outcome returns the event kind of a settled delivery; 0: it was reported before.
func (d *Delivery) outcome(s engine.Settled) Kind {
	switch {
	case errors.Is(s.Err, engine.ErrLeaseLost):
		if d.lossReported {
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
