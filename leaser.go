package tarry

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/dispatch"
)

// Leaser leases from the same queues again and again. What is known of them is kept
// between two calls, so that one costs what it brings, however many queues there are;
// Client.Lease asks anew each time. A Leaser may be used by many goroutines, of which
// one leases at a time.
type Leaser struct {
	c        *Client
	queues   []string           // one of them will do where standing is not nil
	standing *dispatch.Standing // nil: the engine's other side waits

	turn   chan struct{} // holds one token
	closed bool          // guarded by turn
	look   chan struct{} // holds one token: something came, or there is nothing else

	mu   sync.Mutex
	one  *oneLease           // the latest turn
	held map[string]struct{} // queues of which more is held back, which was not told yet
}

// leaserFill is for how long a call that has got something goes on while there is more.
const leaserFill = 10 * time.Millisecond

// Leaser returns a Leaser of 1 to 10,000 queues, to be closed.
func (c *Client) Leaser(queues []string) (*Leaser, error) {
	const op = "lease"
	req := LeaseRequest{Queues: queues, Max: 1}
	if err := req.check(op); err != nil {
		return nil, err
	}
	l := &Leaser{c: c, turn: make(chan struct{}, 1), one: newOneLease(&req), look: make(chan struct{}, 1), held: make(map[string]struct{})}
	if c.caps.LeaseWait {
		l.queues = slices.Clone(queues)
	} else {
		l.queues = slices.Clone(queues[:1])
		l.standing = c.dispatch.Stand(&dispatch.Subscription{
			Queues:  queues,
			Room:    func(queue string, taken int) (int, bool) { return l.latest().room(queue, taken) },
			Deliver: l.deliver,
			Fail:    func(err error) { l.latest().fail(err) },
			Noted:   func(queue string, expired, died int) { l.latest().noted(queue, expired, died) },
			Held:    l.holds,
			Quiet:   l.wake,
		})
	}
	return l, nil
}

// Lease is Client.Lease of the Leaser's queues; the request names none. It waits for
// its turn when another call is under way.
func (l *Leaser) Lease(ctx context.Context, req LeaseRequest) (LeasedMessages, error) {
	const op = "lease"
	if err := l.c.begin(ctx, op, ""); err != nil {
		return LeasedMessages{}, err
	}
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
	w := newOneLease(&req)
	w.fills = true
	l.mu.Lock()
	l.one = w
	l.mu.Unlock()
	l.standing.Begin(dispatch.Demand{TTR: req.TTR, Remote: req.Remote, Ctx: ctx, Until: time.Now().Add(req.Wait)})
	l.await(ctx, w, req.Wait)
	l.standing.End(ctx, leaseCompany)
	l.tellHeld(w)
	var o dispatch.Outlook
	if w.empty() {
		o = l.standing.Outlook()
	}
	got, err := w.result(ctx, l.c, o)
	l.c.meter.handedOut(got.Messages, got.Now)
	return got, err
}

// await waits for the end of a turn: when it is full; when it has something and there is
// nothing else to be had at once; or when the wait is over, and all has been asked.
func (l *Leaser) await(ctx context.Context, w *oneLease, wait time.Duration) {
	over := time.NewTimer(wait)
	defer over.Stop()
	var full <-chan time.Time
	late := false
	for {
		select {
		case <-w.done:
			return
		case <-ctx.Done():
			return
		case <-full:
			return
		case <-over.C:
			late = true
		case <-l.look:
		}
		came := !w.empty()
		if (came || late) && l.standing.Quiet() {
			return
		}
		if came && full == nil {
			full = time.After(leaserFill)
		}
	}
}

func (l *Leaser) deliver(leases []Lease, now, sent time.Time) {
	l.latest().deliver(leases, now, sent)
	l.wake()
}

// holds notes, also between two turns, that more of a queue is held back, or no more.
func (l *Leaser) holds(queue string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held {
		l.held[queue] = struct{}{}
	} else {
		delete(l.held, queue)
	}
}

// tellHeld has a turn tell what is held back.
func (l *Leaser) tellHeld(w *oneLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for queue := range l.held {
		w.holds(queue, true)
	}
	clear(l.held)
}

// wake has await look. It is called by the dispatcher, under its lock, also when there
// is nothing else to be asked for.
func (l *Leaser) wake() {
	select {
	case l.look <- struct{}{}:
	default:
	}
}

func (l *Leaser) latest() *oneLease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.one
}

// Close lets go of the queues, once the calls under way have ended.
func (l *Leaser) Close() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.standing != nil && !l.closed {
		l.standing.Leave()
	}
	l.closed = true
}
