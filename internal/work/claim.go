package work

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// HandleOne handles one lease, requested at sent, on the caller's goroutine. done is called
// once its result is settled.
func (w *Worker) HandleOne(ctx context.Context, h *Handling, l engine.Lease, sent time.Time, done func()) error {
	d := &Delivery{w: w, h: h, lease: l, due: l.Due, claim: newClaimed()}
	if l.TTR > 0 {
		d.term = termFor(sent, l.TTR)
	}
	w.base = ctx
	w.tasks.Go(w.keep)
	w.mu.Lock()
	w.enter(d, w.now())
	w.running++
	d.h.running++
	late := d.stage == unsure
	w.mu.Unlock()
	go func() {
		<-w.stopped // by Close, or once the result is settled
		_ = w.drain("claim")
		done()
	}()
	if late {
		<-d.claim.sure
	}
	w.mu.Lock()
	d.start()
	w.mu.Unlock()
	d.work()
	return d.claim.result(ctx, d)
}

// answerPatience is how long a claim waits, after its context has ended, for the engine's
// answer.
const answerPatience = time.Second

// notStarted returns why the handler of a claim did not start.
func (w *Worker) notStarted() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.broken, engine.ErrClosed) {
		return w.broken
	}
	return errLapsed
}

// claimed tells the goroutine that called Claim what becomes of its delivery.
type claimed struct {
	sure    chan struct{}       // closed when the renewal of an unsure lease has an answer
	settled chan engine.Settled // the engine's answer
}

// answerClaim passes the engine's answer to the claim, and ends its worker.
func (d *Delivery) answerClaim(s engine.Settled) {
	if d.claim != nil {
		d.claim.settled <- s
		d.w.end(errHandlerReturned)
	}
}

func newClaimed() *claimed { return &claimed{make(chan struct{}), make(chan engine.Settled, 1)} }

// result waits for the engine's answer and returns the error of the claim.
func (o *claimed) result(ctx context.Context, d *Delivery) error {
	ref := engine.Ref{Queue: d.lease.Queue, ID: d.lease.ID, Key: d.lease.Key}
	var s engine.Settled
	select {
	case s = <-o.settled:
	case <-ctx.Done():
		timer := time.NewTimer(answerPatience)
		defer timer.Stop()
		select {
		case s = <-o.settled:
		case <-timer.C:
			s.Err = ctx.Err()
		}
	}
	if d.stage < alreadyRunning && s.Err == nil {
		s.Err = d.w.notStarted()
	}
	err := calls.Fail("claim", ref, s.Err)
	switch {
	case d.err == nil:
		return err
	case err == nil:
		return d.err
	}
	return errors.Join(d.err, err)
}
