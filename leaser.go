package tarry

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/internal/dispatch"
)

// Leaser leases from the same queues again and again. It keeps what it knows of them
// between calls, so that the cost of a call depends on what it returns and not on the
// number of queues; Client.Lease starts afresh each time. A Leaser is safe for concurrent
// use; one call leases at a time.
type Leaser struct {
	c        *Client
	queues   []string           // only the first when standing is not nil
	standing *dispatch.Standing // nil: the engine waits by itself

	turn   chan struct{} // holds one token
	closed bool          // guarded by turn
}

// Leaser returns a Leaser of 1 to 10,000 queues. Close it when done.
func (c *Client) Leaser(queues []string) (*Leaser, error) {
	const op = "lease"
	req := LeaseRequest{Queues: queues, Max: 1}
	if err := req.check(op); err != nil {
		return nil, err
	}
	l := &Leaser{c: c, turn: make(chan struct{}, 1)}
	if c.caps.LeaseWait {
		l.queues = slices.Clone(queues)
		return l, nil
	}
	standing, err := c.dispatch.Stand(queues)
	if err != nil {
		return nil, err
	}
	l.queues, l.standing = slices.Clone(queues[:1]), standing
	return l, nil
}

// Lease is Client.Lease of the Leaser's queues; the request names none. It waits while
// another call is under way.
func (l *Leaser) Lease(ctx context.Context, req LeaseRequest) (LeasedMessages, error) {
	const op = "lease"
	if err := l.c.begin(ctx, op, ""); err != nil {
		return LeasedMessages{}, err
	}
	start := time.Now()
	req.Queues = l.queues
	if err := req.checkBut(op); err != nil {
		return LeasedMessages{}, err
	}
	if err := l.c.able(l.c.caps.RemoteLeases || !req.Remote, op, "", "leases for other processes"); err != nil {
		return LeasedMessages{}, err
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return LeasedMessages{}, &Error{Op: op, Err: ctx.Err()}
	}
	switch {
	case l.closed:
		return LeasedMessages{}, errClosed(op, "")
	case l.standing == nil:
		return l.c.Lease(ctx, req)
	}
	a, err := l.standing.Lease(ctx, req.order())
	got, err := leased(a, err, start)
	l.c.meter.leasedToCaller(got.Messages, got.Now)
	return got, err
}

// Close waits for the calls under way and then releases the queues.
func (l *Leaser) Close() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.standing != nil && !l.closed {
		l.standing.Leave()
	}
	l.closed = true
}
