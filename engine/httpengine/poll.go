package httpengine

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	// lastWord is how long to wait for the answer to a lease request after its context has
	// ended.
	lastWord = time.Second
	// releaseTimeout bounds unlease.
	releaseTimeout = 5 * time.Second
)

// lease makes a lease request. When ctx ends, it does not hang up at once, since the server
// may be leasing at that moment. It ends the wait on the server and reads the answer. If none
// comes within lastWord it hangs up, and leases made by then lapse.
func (e *Engine) lease(ctx context.Context, req wire.LeaseRequest) (wire.Leased, error) {
	if err := e.calls.Enter(ctx, "lease"); err != nil {
		return wire.Leased{}, err
	}
	defer e.calls.Leave()
	c, poll := leaseCall(req)
	rest, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.Leased, o.err = e.ask(rest, c)
		done <- o
	}()
	closing := e.ctx.Done()
	if req.Wait == 0 {
		closing = nil // Close waits for this call
	}
	var err error
	select {
	case o := <-done:
		for i := range o.Messages {
			e.watch.leased(o.Messages[i].Queue)
		}
		return o.Leased, o.err
	case <-ctx.Done():
		err = c.fail(ctx.Err(), "")
	case <-closing:
		err = calls.Closed("lease")
	}
	defer time.AfterFunc(lastWord, hangUp).Stop()
	o := e.endPoll(poll, done)
	if o.err == nil && len(o.Messages) > 0 && !errors.Is(err, engine.ErrClosed) {
		return o.Leased, nil
	}
	e.unlease(o.Messages)
	return wire.Leased{Set: o.Set}, err // the server keeps the set even so
}

type outcome struct {
	wire.Leased
	err error
}

// endPoll ends a wait on the server, if it has a name, and returns its outcome. It repeats
// the request until the wait is over, because that request may overtake the wait itself.
func (e *Engine) endPoll(poll string, done <-chan outcome) outcome {
	if poll == "" {
		return <-done
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	body := wire.PollEnding.Append(nil, &poll)
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		b, err := e.roundTrip(ctx, call{op: "lease", method: http.MethodPost, path: "/v1/lease/end", body: body})
		if err == nil {
			b.free()
		}
		select {
		case o := <-done:
			return o
		case <-time.After(pause):
		}
	}
}

// unlease releases leases that the caller does not get. If that fails, they lapse.
func (e *Engine) unlease(ls []engine.Lease) {
	if len(ls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	_, _ = e.settle(ctx, engine.Releases(ls))
}

// ask makes a lease request and reads its answer.
func (e *Engine) ask(ctx context.Context, c call) (wire.Leased, error) {
	l, err := askBegun(ctx, e, c, wire.LeaseAnswer)
	for i := range l.Queues {
		l.Queues[i].Err = failed(l.Queues[i].Err, "lease", engine.Ref{Queue: l.Queues[i].Queue})
	}
	return l, err
}

// leaseCall returns the request, and the name of its wait if it waits.
func leaseCall(req wire.LeaseRequest) (c call, poll string) {
	if req.Wait > 0 {
		req.Poll = rand.Text()
	}
	c = call{op: "lease", method: http.MethodPost, path: "/v1/lease", body: wire.Leasing.Append(nil, &req), wait: req.Wait, brings: req.Max}
	if len(req.Queues) == 1 {
		c.ref.Queue = req.Queues[0]
	}
	return c, req.Poll
}
