package tarry

import (
	"context"
	"maps"
	"slices"
	"sync"
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
	Now      time.Time // the engine's clock
	NextDue  time.Time // when nothing was due: the earliest known time at which something may be; zero: unknown
	Told     []Told    // of queues of which there is more to tell
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

// limited are the queues that there may be less room for than for others.
func (r *LeaseRequest) limited() (limited []string) {
	if len(r.Room) == 0 {
		return nil
	}
	for _, q := range r.Queues {
		if _, less := r.Room[q]; less {
			limited = append(limited, q)
		}
	}
	return limited
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
	w := newOneLease(&req)
	s := &dispatch.Subscription{
		Queues:  req.Queues,
		TTR:     req.TTR,
		Remote:  req.Remote,
		Room:    w.room,
		Limited: req.limited(),
		Deliver: w.deliver,
		Fail:    w.fail,
		Noted:   w.noted,
		Held:    w.holds,
		Once:    true,
		Spread:  spread,
		Ctx:     ctx,
		Asked:   make(chan struct{}),
	}
	var over <-chan time.Time
	if req.Wait > 0 {
		s.Until = time.Now().Add(req.Wait)
		timer := time.NewTimer(req.Wait)
		defer timer.Stop()
		over = timer.C
	}
	leave := c.dispatch.Subscribe(s)
	if req.Wait > 0 {
		select {
		case <-w.done:
		case <-over:
		case <-ctx.Done():
		}
	}
	select {
	case <-w.done:
		// What else is on its way comes along if it comes soon.
		return w.result(ctx, c, leave(ctx, leaseCompany))
	case <-s.Asked:
	case <-ctx.Done():
	}
	return w.result(ctx, c, leave(ctx, 0))
}

// leaseCompany is how long a lease that has messages waits for others that are being
// leased for it.
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

// oneLease gathers what one call of Lease gets.
type oneLease struct {
	fills bool // it goes on after the first
	mu    sync.Mutex
	left  int
	bytes int            // of the bodies that came
	of    map[string]int // how many of a queue are left, where that may be less
	got   LeasedMessages
	told  map[string]int // where a queue stands in got.Told
	err   error
	ended bool
	done  chan struct{}
}

func newOneLease(req *LeaseRequest) *oneLease {
	return &oneLease{left: req.Max, of: maps.Clone(req.Room), done: make(chan struct{})}
}

func (w *oneLease) room(queue string, taken int) (n int, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || taken >= w.left {
		return 0, true
	}
	n = w.left - taken
	if most, ok := w.of[queue]; ok {
		n = min(n, most)
	}
	return n, false
}

func (w *oneLease) deliver(leases []Lease, now, _ time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left -= len(leases)
	w.got.Messages = append(w.got.Messages, leases...)
	w.got.Now = now
	for i := range leases {
		l := &leases[i]
		if n, ok := w.of[l.Queue]; ok {
			w.of[l.Queue] = n - 1
		}
		w.bytes += len(l.Body)
	}
	if !w.fills || w.left <= 0 || w.bytes >= engine.AnswerBytes {
		w.end()
	}
}

func (w *oneLease) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && len(w.got.Messages) == 0 {
		w.err = err
	}
	w.end()
}

// noted adds up what ended before anybody got it.
func (w *oneLease) noted(queue string, expired, died int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tell(queue)
	t.Expired += expired
	t.Died += died
}

// holds notes that more of a queue is held back; that it is no more need not be told.
func (w *oneLease) holds(queue string, held bool) {
	if !held {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(queue).Held = true
}

// tell is what is told of a queue. Called with w.mu held.
func (w *oneLease) tell(queue string) *Told {
	i, known := w.told[queue]
	if !known {
		if w.told == nil {
			w.told = make(map[string]int)
		}
		i = len(w.got.Told)
		w.told[queue], w.got.Told = i, append(w.got.Told, Told{Queue: queue})
	}
	return &w.got.Told[i]
}

func (w *oneLease) empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got.Messages) == 0
}

func (w *oneLease) end() {
	if !w.ended {
		w.ended = true
		close(w.done)
	}
}

// result is called when no more can be delivered. It holds no lock when it calls the
// dispatcher, which locks w under its own.
func (w *oneLease) result(ctx context.Context, c *Client, o dispatch.Outlook) (LeasedMessages, error) {
	ended := ctx.Err()
	w.mu.Lock()
	got, failure := w.got, w.err
	w.mu.Unlock()
	switch {
	case ended != nil:
		c.dispatch.GiveBack(got.Messages)
		return LeasedMessages{}, &Error{Op: "lease", Err: ended}
	case len(got.Messages) > 0:
		return got, nil
	}
	if failure == nil {
		failure = o.Err
	}
	got.Now, got.NextDue = o.Now, o.Next
	return got, fail("lease", Ref{}, failure)
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
