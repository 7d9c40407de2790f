package tarry

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/dispatch"
	"github.com/tarryhq/tarry/internal/sift"
)

// LeaseOptions says how leases are to be given.
type LeaseOptions struct {
	// TTR is how long the leases last, 1 ms to 24 h; 0: each message's own.
	TTR time.Duration
	// Remote says that the lease is passed on to another process, and must outlive
	// this one. Leases without it end when this process does.
	Remote bool
}

// LeaseRequest asks for messages that are due, of each queue some where many have any.
type LeaseRequest struct {
	Queues []string       // at least one
	Max    int            // messages at most over all queues, 1 to 1000
	Wait   time.Duration  // for the first message; 0: do not wait
	Room   map[string]int // how many of a queue at most, where that is less than Max; 0: none
	LeaseOptions
}

// LeasedMessages is the answer to a LeaseRequest.
type LeasedMessages struct {
	Messages []Lease
	Now      time.Time // the engine's clock, after the messages were leased
	NextDue  time.Time // when nothing was due: the earliest known time at which something may be; zero: unknown
	Told     []Told    // of queues of which there is more to tell

	// Waited is how long the call had waited when the engine was asked for the first of
	// the messages. By the caller's own clock their leases last from then on.
	Waited time.Duration
}

// Told is what is told of a queue beside its messages.
type Told struct {
	Queue   string
	Expired int  // messages dropped past their ExpireAfter before anybody got them, told to one who asks
	Died    int  // lapsed with their attempts used up, likewise
	Held    bool // more was found ready, and held back by Settings.InFlight or Rate
}

// Lease takes messages that are due, waiting for the first as long as asked. No
// messages and no error means that the wait was over. Whoever leases settles each
// message by its token before its deadline, or it goes to someone else. Workers do all
// this by themselves.
//
// The engine is asked at least once. A wait whose end falls while it is being asked
// takes what that brings, and so ends a little later. When ctx ends, Lease returns at
// once, and what was leased meanwhile is released. It fails when nothing came and one
// of the queues could not be asked, and at once when none can: with ErrUnavailable
// when the engine has not answered for 20 s.
func (c *Client) Lease(ctx context.Context, req LeaseRequest) (LeasedMessages, error) {
	const op = "lease"
	if err := c.begin(ctx, op, ""); err != nil {
		return LeasedMessages{}, err
	}
	if err := req.check(op); err != nil {
		return LeasedMessages{}, err
	}
	if err := c.able(c.caps.RemoteLeases || !req.Remote, op, "", "leases for other processes"); err != nil {
		return LeasedMessages{}, err
	}
	if req.leaveOut(); len(req.Queues) == 0 {
		return LeasedMessages{}, engine.Invalid(op, Ref{}, "there is room for messages of no queue")
	}
	got, err := c.leaseOnce(ctx, req, true)
	rest := req.rest(got.Messages)
	if err != nil || len(rest.Queues) == 0 {
		c.meter.handedOut(got.Messages, got.Now)
		return got, err
	}
	soon, cancel := context.WithTimeout(ctx, leaseCompany)
	defer cancel()
	more, err := c.leaseOnce(soon, rest, false)
	if ctx.Err() != nil {
		c.dispatch.GiveBack(append(got.Messages, more.Messages...))
		return LeasedMessages{}, &Error{Op: op, Err: ctx.Err()}
	}
	if err == nil {
		got.Messages = append(got.Messages, more.Messages...)
		if more.Now.After(got.Now) {
			got.Now = more.Now
		}
		for _, t := range more.Told {
			got.tell(t)
		}
	}
	c.meter.handedOut(got.Messages, got.Now)
	return got, nil
}

// tell adds what was told of a queue.
func (l *LeasedMessages) tell(t Told) {
	i := slices.IndexFunc(l.Told, func(o Told) bool { return o.Queue == t.Queue })
	if i < 0 {
		l.Told = append(l.Told, t)
		return
	}
	o := &l.Told[i]
	o.Expired, o.Died, o.Held = o.Expired+t.Expired, o.Died+t.Died, o.Held || t.Held
}

// rest asks those queues for more that may have it, where others left room: who spreads
// asks each for a share only.
func (r *LeaseRequest) rest(got []Lease) LeaseRequest {
	rest := LeaseRequest{Max: r.Max - len(got), LeaseOptions: r.LeaseOptions}
	if rest.Max <= 0 {
		return rest
	}
	rest.Room = roomLeft(r.Room, got)
	share, of := max(1, r.Max/len(r.Queues)), make(map[string]int)
	for i := range got {
		q := got[i].Queue
		if of[q]++; of[q] == share {
			rest.Queues = append(rest.Queues, q)
		}
	}
	rest.leaveOut()
	return rest
}

// leaveOut takes out the queues that there is no room for.
func (r *LeaseRequest) leaveOut() {
	if len(r.Room) > 0 {
		r.Queues = slices.DeleteFunc(slices.Clone(r.Queues), func(q string) bool { n, less := r.Room[q]; return less && n == 0 })
	}
}

// roomLeft is what room is left beside what was leased.
func roomLeft(room map[string]int, got []Lease) map[string]int {
	room = maps.Clone(room)
	for i := range got {
		if n, ok := room[got[i].Queue]; ok {
			room[got[i].Queue] = n - 1
		}
	}
	return room
}

// leaseOnce leases by one subscription, which takes of each queue if it spreads.
func (c *Client) leaseOnce(ctx context.Context, req LeaseRequest, spread bool) (LeasedMessages, error) {
	o := req.order()
	o.Spread = spread
	start := time.Now()
	a, err := c.dispatch.Lease(ctx, o)
	return leased(a, err, start)
}

func (r *LeaseRequest) order() dispatch.Order {
	return dispatch.Order{Queues: r.Queues, Max: r.Max, Room: r.Room, Wait: r.Wait, TTR: r.TTR, Remote: r.Remote}
}

// leased is the dispatcher's answer to a call that began at start, as it is told.
func leased(a dispatch.Answer, err error, start time.Time) (LeasedMessages, error) {
	l := LeasedMessages{Messages: a.Messages, Now: a.Now, NextDue: a.Next}
	if len(a.Messages) > 0 {
		l.Waited = max(0, a.Sent.Sub(start))
	}
	for _, t := range a.Told {
		l.Told = append(l.Told, Told(t))
	}
	return l, fail("lease", Ref{}, err)
}

// leaseCompany is how long a lease that has messages waits for more of the same queues.
const leaseCompany = 100 * time.Millisecond

func (r *LeaseRequest) check(op string) error {
	switch {
	case len(r.Queues) == 0:
		return engine.Invalid(op, Ref{}, "no queue is given")
	case len(r.Queues) > MaxBatch:
		return engine.Invalid(op, Ref{}, "%d queues in one call; at most %d are allowed", len(r.Queues), MaxBatch)
	}
	for _, q := range r.Queues {
		if err := engine.CheckQueue(op, q); err != nil {
			return err
		}
	}
	return r.checkBut(op)
}

// checkBut checks all but the queues, of which there is one.
func (r *LeaseRequest) checkBut(op string) error {
	if r.Wait < 0 {
		return engine.Invalid(op, Ref{}, "the wait %s is negative", r.Wait)
	}
	for q, n := range r.Room {
		if n < 0 {
			return engine.Invalid(op, Ref{Queue: q}, "the room %d is negative", n)
		}
	}
	w := Want{Queue: r.Queues[0], Max: r.Max, TTR: r.TTR}
	return w.Validate()
}

// Settle ends or extends leases; each succeeds or fails alone, with its error in
// SettleResult.Err: ErrLeaseLost when the lease was settled, taken over or cancelled
// before. At most 10,000 at once.
func (c *Client) Settle(ctx context.Context, settlements []Settlement) ([]SettleResult, error) {
	const op = "settle"
	if err := c.beginBatch(ctx, op, len(settlements)); err != nil {
		return nil, err
	}
	settlements = slices.Clone(settlements) // a caller who leaves early may change his
	for i := range settlements {
		if s := &settlements[i]; s.When != nil {
			when := *s.When
			s.When = &when
		}
	}
	good, errs := sift.Items(settlements, func(i int) error { return settlements[i].Validate() })
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
		return nil, fail(op, Ref{}, err)
	}
	c.meter.settled(good.Items, got, nil)
	for j, s := range got {
		s.Err = fail(op, Ref{}, s.Err)
		out[good.At(j)] = s
	}
	return out, nil
}

// LeaseNow takes what is due and hands on the engine's answer whole: for each want
// its messages, and when there may be more. It does not wait, nor queue up behind
// those who do. Each Max is 1 to 1000. When ctx ends, what was leased is released.
func (c *Client) LeaseNow(ctx context.Context, wants []Want) (Grant, error) {
	const op = "lease"
	if err := c.beginBatch(ctx, op, len(wants)); err != nil {
		return Grant{}, err
	}
	for i := range wants {
		if err := wants[i].Validate(); err != nil {
			return Grant{}, err
		}
		if err := c.able(c.caps.RemoteLeases || !wants[i].Remote, op, wants[i].Queue, "leases for other processes"); err != nil {
			return Grant{}, err
		}
	}
	g, err := c.eng.Lease(ctx, wants)
	if err != nil {
		return Grant{}, fail(op, Ref{}, err)
	}
	if err := ctx.Err(); err != nil {
		for _, got := range g.Queues {
			c.dispatch.GiveBack(got.Messages)
		}
		return Grant{}, fail(op, Ref{}, err)
	}
	for i := range g.Queues {
		c.meter.handedOut(g.Queues[i].Messages, g.Now)
	}
	return g, nil
}
