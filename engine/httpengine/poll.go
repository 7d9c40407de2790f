package httpengine

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/gate"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	// lastWord is how long a lease request whose context has ended is waited for.
	lastWord = time.Second
	// leaveAfter is how long it is waited for in the background then, until its
	// connection is cut.
	leaveAfter = 5 * time.Second
)

// lease makes a lease request. It never hangs up on the server for a context that
// ends, since the server may be leasing at that moment: it ends the wait there, and
// reads the answer. What comes soon is the caller's; what comes later is given back.
func (e *Engine) lease(ctx context.Context, req wire.LeaseRequest) (wire.Leased, error) {
	if err := e.calls.Enter(ctx, "lease"); err != nil {
		return wire.Leased{}, err
	}
	c, poll := leaseCall(req)
	rest, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.Leased, o.err = e.ask(rest, c)
		done <- o
	}()
	release := func() {
		hangUp()
		e.calls.Leave()
	}
	closing := e.ctx.Done()
	if req.Wait == 0 {
		closing = nil // Close waits for it
	}
	var err error
	var set string
	select {
	case o := <-done:
		release()
		for i := range o.Messages {
			e.watch.leased(o.Messages[i].Queue)
		}
		return o.Leased, o.err
	case <-ctx.Done():
		err = c.fail(ctx.Err(), "")
	case <-closing:
		err = gate.Closed("lease")
	}
	cut := time.AfterFunc(leaveAfter, hangUp)
	over := make(chan struct{})
	if poll != "" {
		e.tasks.Go(func() { e.endPoll(poll, over) })
	}
	timer := time.NewTimer(lastWord)
	defer timer.Stop()
	closed := errors.Is(err, engine.ErrClosed)
	select {
	case o := <-done:
		close(over)
		cut.Stop()
		if o.err == nil && len(o.Messages) > 0 && !closed {
			release()
			return o.Leased, nil
		}
		e.unlease(o.Messages)
		release()
		set = o.Set // which the server keeps all the same
	case <-timer.C:
		go func() {
			defer release()
			o := <-done
			close(over)
			cut.Stop()
			e.unlease(o.Messages)
		}()
	}
	return wire.Leased{Set: set}, err
}

type outcome struct {
	wire.Leased
	err error
}

// endPoll has the server end a poll, again and again until it is over: the request to
// end it may overtake the poll.
func (e *Engine) endPoll(poll string, over <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveAfter)
	defer cancel()
	body := wire.AppendEndLease(nil, poll)
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		b, err := e.roundTrip(ctx, call{op: "lease", method: http.MethodPost, path: "/v1/lease/end", body: body})
		if err == nil {
			b.free()
		}
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// unlease releases leases that came too late. Those that cannot be released lapse.
func (e *Engine) unlease(ls []engine.Lease) {
	if len(ls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveAfter)
	defer cancel()
	_, _ = e.settle(ctx, engine.Releases(ls))
}

// ask makes a lease request and reads its answer.
func (e *Engine) ask(ctx context.Context, c call) (wire.Leased, error) {
	l, err := askBegun(ctx, e, c, (*wire.Reader).Leased)
	for i := range l.Queues {
		l.Queues[i].Err = failed(l.Queues[i].Err, "lease", engine.Ref{Queue: l.Queues[i].Queue})
	}
	return l, err
}

// leaseCall is the request, and the name of its wait, if it waits.
func leaseCall(req wire.LeaseRequest) (c call, poll string) {
	if req.Wait > 0 {
		req.Poll = rand.Text()
	}
	c = call{op: "lease", method: http.MethodPost, path: "/v1/lease", body: wire.AppendLeaseRequest(nil, &req), wait: req.Wait, brings: req.Max}
	if len(req.Queues) == 1 {
		c.ref.Queue = req.Queues[0]
	}
	return c, req.Poll
}
