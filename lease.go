package tarry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/dispatch"
)

// LeaseOptions are the options of a lease.
type LeaseOptions struct {
	// TTR is how long the leases last, 1 ms to 24 h; 0: each message's own.
	TTR time.Duration
	// Remote is for a lease that goes to another process, and so must outlive this process.
	// Other leases may end with this process.
	Remote bool
	// Worker is the name of the worker that takes the lease, which look-ups, lists and
	// failures show: at most 100 bytes without control characters. Default: none.
	Worker string
}

// LeaseRequest asks for due messages, spread over the queues that have some.
type LeaseRequest struct {
	Queues []string       // at least one
	Max    int            // at most this many messages over all queues, 1 to 1000
	Wait   time.Duration  // how long to wait for the first message; 0: do not wait
	Room   map[string]int // a lower maximum for single queues; 0: no messages of the queue
	LeaseOptions
}

// Lease takes due messages, and waits for the first up to Wait. No messages and no error
// mean that the wait is over. The caller must settle each message by its token before its
// deadline; after that the message is leased again. Workers do all this by themselves.
//
// Lease asks the engine at least once. If the wait ends during a call of the engine, Lease
// still takes the answer of that call, and so returns a little later. When ctx ends, it
// returns at once and releases what was leased meanwhile. It fails at once if no queue can
// be asked, and after the wait if nothing came and one queue could not be asked. It fails
// with ErrUnavailable when the engine has not answered for 20 s, a server for its timeout
// after the wait.
func (c *Client) Lease(ctx context.Context, req LeaseRequest) (LeasedMessages, error) {
	const op = "lease"
	if err := cmp.Or(c.begin(ctx, op, ""), req.check(op), c.ableFor(op, "", req.Remote)); err != nil {
		return LeasedMessages{}, err
	}
	if req.leaveOut(); len(req.Queues) == 0 {
		return LeasedMessages{}, engine.Invalid(op, Ref{}, "there is room for messages of no queue")
	}
	got, err := c.dispatch.Lease(ctx, req.wait())
	c.meter.leasedToCaller(got.Messages, got.Now)
	return got, calls.Fail(op, Ref{}, err)
}

// leaveOut removes the queues without room.
func (r *LeaseRequest) leaveOut() {
	if len(r.Room) > 0 {
		r.Queues = slices.DeleteFunc(slices.Clone(r.Queues), func(q string) bool { n, less := r.Room[q]; return less && n == 0 })
	}
}

func (r *LeaseRequest) wait() engine.Wait {
	return engine.Wait{Queues: r.Queues, Max: r.Max, Room: r.Room, For: r.Wait, TTR: r.TTR, Remote: r.Remote, Worker: r.Worker}
}

func (r *LeaseRequest) check(op string) error {
	switch {
	case len(r.Queues) == 0:
		return engine.Invalid(op, Ref{}, "no queue is given")
	case len(r.Queues) > MaxBatch:
		return engine.Invalid(op, Ref{}, "%d queues in one call; at most %d are allowed", len(r.Queues), MaxBatch)
	}
	if err := checkQueues(op, r.Queues); err != nil {
		return err
	}
	return r.checkBut(op)
}

func checkQueues(op string, queues []string) error {
	for _, q := range queues {
		if err := engine.CheckQueue(op, q); err != nil {
			return err
		}
	}
	return nil
}

// checkBut checks all but the queues; there must be at least one.
func (r *LeaseRequest) checkBut(op string) error {
	if r.Wait < 0 {
		return engine.Invalid(op, Ref{}, "the wait %s is negative", r.Wait)
	}
	for q, n := range r.Room {
		if n < 0 {
			return engine.Invalid(op, Ref{Queue: q}, "the room %d is negative", n)
		}
	}
	w := engine.Want{Queue: r.Queues[0], Max: r.Max, TTR: r.TTR, Worker: r.Worker}
	return w.Validate()
}

// Settle ends or extends leases, at most 10,000 at once. Each succeeds or fails alone, with
// its error in SettleResult.Err: ErrLeaseLost when the lease had already been settled, taken
// over or cancelled.
func (c *Client) Settle(ctx context.Context, settlements []Settlement) ([]SettleResult, error) {
	const op = "settle"
	if err := c.beginBatch(ctx, op, len(settlements)); err != nil {
		return nil, err
	}
	settlements = slices.Clone(settlements) // the caller may reuse its slice if ctx ends early
	for i := range settlements {
		s := &settlements[i]
		s.When, s.Priority = clone(s.When), clone(s.Priority)
	}
	good, errs := calls.Sift(settlements, func(i int) error {
		able := c.able(c.caps.Reprioritize || settlements[i].Priority == nil, op, "", "priorities of settlements")
		return cmp.Or(able, settlements[i].Validate())
	})
	out := make([]SettleResult, len(settlements))
	for i, err := range errs {
		out[i].Err = err
	}
	if len(good.Items) == 0 {
		return out, nil
	}
	got, err := c.eng.Settle(ctx, good.Items)
	if err != nil {
		c.meter.settled(good.Items, nil, err)
		return nil, calls.Fail(op, Ref{}, err)
	}
	c.meter.settled(good.Items, got, nil)
	for j, s := range got {
		s.Err = calls.Fail(op, Ref{}, s.Err)
		out[good.At(j)] = s
	}
	return out, nil
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// LeaseNow takes what is due and returns the engine's whole answer: the messages of each
// want, and when there may be more. It is for servers that answer in the form of package
// engine. It does not wait, and does not queue behind waiting leases. Each Max is 1 to 1000.
// When ctx ends, LeaseNow releases what it leased.
func (c *Client) LeaseNow(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	const op = "lease"
	if err := c.beginBatch(ctx, op, len(wants)); err != nil {
		return engine.Grant{}, err
	}
	for i := range wants {
		if err := cmp.Or(wants[i].Validate(), c.ableFor(op, wants[i].Queue, wants[i].Remote)); err != nil {
			return engine.Grant{}, err
		}
	}
	g, err := c.eng.Lease(ctx, wants)
	if err != nil {
		return engine.Grant{}, calls.Fail(op, Ref{}, err)
	}
	if err := ctx.Err(); err != nil {
		for _, got := range g.Queues {
			c.dispatch.GiveBack(got.Messages)
		}
		return engine.Grant{}, calls.Fail(op, Ref{}, err)
	}
	for i := range g.Queues {
		c.meter.leasedToCaller(g.Queues[i].Messages, g.Now)
	}
	return g, nil
}

// Leaser leases from the same queues again and again. It keeps what it knows of the queues
// between calls, while Client.Lease starts afresh each time. So the cost of a call depends
// on what it returns and not on the number of queues. A Leaser is safe for concurrent use;
// one call leases at a time.
type Leaser struct {
	c        *Client
	queues   []string           // if standing is not nil, only the first one
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

// Lease is Client.Lease on the Leaser's queues; it ignores req.Queues. It waits while
// another call is under way.
func (l *Leaser) Lease(ctx context.Context, req LeaseRequest) (LeasedMessages, error) {
	const op = "lease"
	if err := l.c.begin(ctx, op, ""); err != nil {
		return LeasedMessages{}, err
	}
	start := time.Now()
	req.Queues = l.queues
	if err := cmp.Or(req.checkBut(op), l.c.ableFor(op, "", req.Remote)); err != nil {
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
	queued := time.Since(start)
	got, err := l.standing.Lease(ctx, req.wait())
	if len(got.Messages) > 0 {
		got.Waited += queued
	}
	l.c.meter.leasedToCaller(got.Messages, got.Now)
	return got, calls.Fail(op, Ref{}, err)
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
