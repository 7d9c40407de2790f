package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// call is one call to the engine and who gets what of the answer.
type call struct {
	asked

	round     uint64
	began     time.Time
	cancel    context.CancelFunc
	replaced  bool // another goroutine runs the dispatcher while it is under way
	slow      bool // it has taken so long that the room it was asked for is not kept any more
	ended     bool // its time is over: its context has been ended
	concluded bool
}

// asked is what a call asks for, and for whom.
type asked struct {
	wants   []engine.Want
	beliefs []*belief // for each want; those of one queue stand together
	shares  []share   // queue by queue, in the order of subscription
	handed  []handed  // what came for workers
}

type share struct {
	sub  *Subscription
	want int // of the call
	n    int
	turn int // in which it was asked for
}

const (
	// wantsMax is how many wants one call takes on, so that those of its queues that
	// the engine is quick with wait for few others.
	wantsMax = 100
	// lanesMax is how many calls may be under way that are younger than slowCall, and
	// callsMax how many in all. The room for what a call may bring is kept for that
	// long; its queues are asked alone from then on, until they answer sooner.
	lanesMax = 4
	slowCall = time.Second
	callsMax = 16
	// spareShares is for how many shares memory is kept between two calls.
	spareShares = 1024
	// leaseTimeout bounds a call, whose context ends then.
	leaseTimeout = 20 * time.Second
)

var (
	errNoAnswer = &engine.Error{Op: "lease", Err: engine.ErrUnavailable,
		Hint: fmt.Sprintf("the engine has not answered within %s", leaseTimeout)}
	errAllHang = &engine.Error{Op: "lease", Err: engine.ErrUnavailable,
		Hint: fmt.Sprintf("the engine does not answer: %d calls are under way", callsMax)}
)

// plan decides what to ask now; nil: nothing. Called with d.mu held.
func (d *Dispatcher) plan(now time.Time) *call {
	young := 0
	for _, c := range d.calls {
		switch {
		case c.slow:
		case passed(c.began.Add(slowCall), now):
			c.slow = true
			for _, sh := range c.shares {
				sh.sub.taken -= sh.n
			}
		default:
			young++
		}
		if !c.ended && passed(c.began.Add(leaseTimeout), now) {
			c.ended = true
			c.cancel()
		}
	}
	for moment := d.moment(now); len(d.timed) > 0 && d.timed[0].wake <= moment; {
		d.ask(d.timed[0])
	}
	if d.ready.first == nil || young >= lanesMax {
		d.short.Store(false)
		return nil
	}
	// Whoever has freed room since this is heard.
	d.short.Store(true)
	short := false
	d.rounds++
	c := &call{asked: d.spare, round: d.rounds, began: now}
	d.spare = asked{}
	d.open = len(d.subs) - d.resting
	for l := d.ready.first; l != nil && len(c.wants) < wantsMax; {
		b := l.of
		l = l.next
		if d.open == 0 { // nobody has room, whatever the queue
			short = true
			break
		}
		switch {
		case b.apart && len(c.wants) > 0:
			continue // it comes first next time
		case len(d.calls) >= callsMax:
			d.cannot(b, errAllHang, now)
			continue
		}
		if !d.want(c, b, now) {
			short = true // it keeps its place, or it could always meet a full house
			d.park(b, now)
			continue
		}
		d.unready(b)
		b.busy, b.hinted = true, false
		b.tellSpread(0, 1)
		if b.apart {
			break
		}
	}
	d.short.Store(short)
	if len(c.wants) == 0 {
		d.spare = c.asked
		return nil
	}
	return c
}

func passed(t, now time.Time) bool { return !t.After(now) }

// want adds to a call what the subscribers of a queue have room for, and reports
// whether that is anything. Called with d.mu held.
func (d *Dispatcher) want(c *call, b *belief, now time.Time) bool {
	first, reached := len(c.wants), 0
	b.cut = false
	for l := b.seats.first; l != nil; l = l.next {
		s := l.of
		if s.full == d.rounds || s.over(now) {
			continue
		}
		w := first
		for w < len(c.wants) && !s.takes(&c.wants[w]) {
			w++
		}
		most := engine.MaxLease
		if w < len(c.wants) {
			most -= c.wants[w].Max
		}
		if s.Spread {
			d.visit(s)
		}
		n, full := s.room(b.queue, b.held)
		if full {
			s.full = d.rounds
			d.open--
			continue
		}
		n = min(n, most)
		if s.Spread {
			n = s.spread(n)
		}
		if n <= 0 {
			if s.stands {
				d.leftOut(s)
			}
			continue
		}
		if reached == int(b.reach) {
			b.cut = true
			break
		}
		reached++
		if w == len(c.wants) {
			c.wants = append(c.wants, engine.Want{Queue: b.queue, TTR: s.TTR, Remote: s.Remote})
			c.beliefs = append(c.beliefs, b)
		}
		s.taken += n
		s.calls++
		c.wants[w].Max += n
		c.shares = append(c.shares, share{s, w, n, s.turn})
	}
	return reached > 0
}

// visit notes that a round comes to a subscription that spreads. Called with d.mu held.
func (d *Dispatcher) visit(s *Subscription) {
	if s.round == d.rounds {
		return
	}
	if s.once() && s.round != 0 && d.caps.GiveBack {
		s.answer.widen() // the rounds before did not bring enough
	}
	s.round, s.left = d.rounds, s.asks
}

// spread divides the room of a subscription among those of its ready queues that the
// round has not come to yet. Called with d.mu held.
func (s *Subscription) spread(n int) int {
	left := max(s.left, 1)
	s.left--
	return (n + left - 1) / left
}

// cannot tells all who wait on a queue that it is not asked now. Called with d.mu held.
func (d *Dispatcher) cannot(b *belief, err error, now time.Time) {
	d.unready(b)
	d.place(b, d.learn(b, &engine.Granted{Err: err}, time.Time{}, now, now))
	for l := b.seats.first; l != nil; l = l.next {
		if s := l.of; !s.leaving && (!s.once() || s.hopeless()) {
			d.fail(&d.failed, s, err)
		}
	}
	d.see()
}

// see notes which new subscriptions have had all their queues asked. Called with d.mu
// held.
func (d *Dispatcher) see() {
	left := d.fresh[:0]
	for _, s := range d.fresh {
		if !d.seen(s) {
			left = append(left, s)
		}
	}
	clear(d.fresh[len(left):])
	d.fresh = left
}

// conclude notes what the answer to a call says of its queues, hands out the leases, and
// tells workers of theirs when it has let go of the lock.
func (d *Dispatcher) conclude(c *call, g engine.Grant, err error) {
	d.mu.Lock()
	c.concluded = true
	d.drop(c)
	switch {
	case err == nil:
	case d.closed:
		err = errClientClosed("lease")
	case c.ended && errors.Is(err, context.Canceled):
		err = errNoAnswer
	}
	now := time.Now()
	failed, failure := d.heed(c, &g, err, now)
	orphans := d.share(c, &g, now)
	d.see()
	if d.closed {
		failed = 0
	}
	queue, over := c.wants[0].Queue, len(c.handed) == 0 && len(orphans) == 0
	if over {
		d.over(c)
	}
	d.mu.Unlock()
	if failed > 0 {
		d.log.Warn("the engine could not be asked for messages", "queue", queue, "queues", failed, "error", failure)
	}
	if over {
		return
	}
	d.tell(c.handed)
	end := func() {
		d.release(orphans)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.over(c)
	}
	if len(orphans) == 0 {
		end()
	} else {
		d.tasks.Go(end) // the engine may take long over it, and others wait
	}
}

// over has those who drain leave, if this was the last call for them: what it brought
// has been delivered, or released. Called with d.mu held.
func (d *Dispatcher) over(c *call) {
	for _, sh := range c.shares {
		if !sh.sub.once() {
			sh.sub.done()
		}
	}
	if cap(c.shares) <= spareShares {
		clear(c.beliefs)
		clear(c.shares)
		clear(c.handed)
		d.spare = asked{c.wants[:0], c.beliefs[:0], c.shares[:0], c.handed[:0]}
	}
	c.asked = asked{}
}

// done notes that a call for a subscription is over. Called with Dispatcher.mu held.
func (s *Subscription) done() {
	if s.calls--; s.calls == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// heed learns what the answer to a call says of its queues, and returns how many could
// not be asked, and why. Called with d.mu held.
func (d *Dispatcher) heed(c *call, g *engine.Grant, err error, now time.Time) (failed int, failure error) {
	if err != nil {
		g.Queues = slices.Repeat([]engine.Granted{{Err: err}}, len(c.wants))
	}
	for i, b := range c.beliefs {
		got := &g.Queues[i]
		again := d.learn(b, got, g.Now, c.began, now)
		b.apart = c.slow || now.Sub(c.began) >= slowCall
		if i+1 == len(c.beliefs) || c.beliefs[i+1] != b {
			d.place(b, again)
		}
		if got.Err != nil {
			failed, failure = failed+1, got.Err
		}
	}
	return failed, failure
}

// share hands out the answer to a call, and returns what nobody has room for. Called
// with d.mu held.
func (d *Dispatcher) share(c *call, g *engine.Grant, now time.Time) (orphans []engine.Lease) {
	for _, sh := range c.shares {
		s, b, left := sh.sub, c.beliefs[sh.want], &g.Queues[sh.want].Messages
		n := sh.n
		if !c.slow {
			s.taken -= n
		}
		switch {
		case s.gone || s.leaving && !s.once() || !s.takes(&c.wants[sh.want]):
			n = 0 // it has left, drains, or takes another turn, which wants others
		case c.slow || s.once():
			n = min(n, s.canTake(b.queue, b.held))
		}
		n = min(n, len(*left))
		if !s.gone {
			d.explain(c, b, s)
			if n > 0 {
				d.deliver(&c.handed, s, (*left)[:n:n], g.Now, c.began)
				*left = (*left)[n:]
			}
		}
		if s.once() {
			s.done()
		}
	}
	for i := range g.Queues {
		if left := g.Queues[i].Messages; len(left) > 0 {
			orphans = append(orphans, d.rehome(c, i, left, g.Now, now)...)
		}
	}
	return orphans
}

// explain tells a subscription what an answer says of a queue beside its messages.
// Called with d.mu held.
func (d *Dispatcher) explain(c *call, b *belief, s *Subscription) {
	if b.expired > 0 || b.died > 0 {
		d.note(&c.handed, s, b.queue, b.expired, b.died) // to one alone, so that none is counted twice
		b.expired, b.died = 0, 0
	}
	s.hold(b)
	if b.err != nil && s.told != c.round && (!s.once() || s.hopeless()) {
		s.told = c.round
		d.fail(&c.handed, s, b.err)
	}
}

// rehome hands leases that are left to others who wait for such. It returns what is
// left then. Called with d.mu held.
func (d *Dispatcher) rehome(c *call, want int, ls []engine.Lease, engineNow, now time.Time) []engine.Lease {
	w, b := &c.wants[want], c.beliefs[want]
	for l := b.seats.first; l != nil && len(ls) > 0; l = l.next {
		s := l.of
		if !s.takes(w) || s.over(now) || s.once() && s.answer.ended {
			continue
		}
		if n := min(s.canTake(b.queue, b.held), len(ls)); n > 0 {
			s.hold(b)
			d.deliver(&c.handed, s, ls[:n:n], engineNow, c.began)
			ls = ls[n:]
		}
	}
	return ls
}

// drop takes a call from those under way. Called with d.mu held.
func (d *Dispatcher) drop(c *call) {
	for i := range d.calls {
		if d.calls[i] == c {
			d.calls = append(d.calls[:i], d.calls[i+1:]...)
			return
		}
	}
}
