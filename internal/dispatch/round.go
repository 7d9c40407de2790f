package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// call is one call to the engine, with the shares of its answer.
type call struct {
	asked

	round     uint64
	began     time.Time
	cancel    context.CancelFunc
	replaced  bool // another goroutine has taken over meanwhile
	slow      bool // it has taken so long that its room is no longer reserved
	ended     bool // its timeout is over, and its context cancelled
	concluded bool
}

// asked is what a call requests, and for which subscriptions.
type asked struct {
	wants   []engine.Want
	beliefs []*belief // for each want; those of one queue are adjacent
	shares  []share   // queue by queue, in order of subscription
	handed  []handed  // callbacks of workers
}

// share is how many messages of a want are meant for a subscription.
type share struct {
	sub    *Subscription
	want   int // index in wants
	n      int
	worker string
}

const (
	// wantsMax bounds the wants of one call, so that a queue waits for few others in it.
	wantsMax = 100
	// lanesMax bounds the calls under way that are younger than slowCall; callsMax bounds
	// all calls under way. After slowCall the room of a call is no longer reserved, and its
	// queues are asked alone until they are quick again.
	lanesMax = 4
	slowCall = time.Second
	callsMax = 16
	// spareShares is how many shares memory is kept for between calls.
	spareShares = 1024
	// leaseTimeout is the timeout of a call.
	leaseTimeout = 20 * time.Second
)

var (
	errNoAnswer = &engine.Error{Op: "lease", Err: engine.ErrUnavailable,
		Hint: fmt.Sprintf("the engine has not answered within %s", leaseTimeout)}
	errAllHang = &engine.Error{Op: "lease", Err: engine.ErrUnavailable,
		Hint: fmt.Sprintf("the engine does not answer: %d calls are under way", callsMax)}
)

// plan returns the next call; nil: nothing can be asked now. Called with d.mu held.
func (d *Dispatcher) plan(now time.Time) *call {
	young := 0
	for _, c := range d.calls {
		switch {
		case c.slow:
		case passed(c.began.Add(slowCall), now):
			c.slow = true
			for _, sh := range c.shares {
				sh.sub.onTheWay -= sh.n
			}
		default:
			young++
		}
		if !c.ended && passed(c.began.Add(leaseTimeout), now) {
			c.ended = true
			c.cancel()
		}
	}
	moment := d.moment(now)
	for len(d.timed) > 0 && d.timed[0].wake <= moment {
		d.ask(d.timed[0])
	}
	d.wakeOnRoom.Store(false)
	if d.ready.first == nil || young >= lanesMax || moment < d.next && !d.behind(now) {
		return nil
	}
	// From here on Freed wakes the dispatcher.
	d.wakeOnRoom.Store(true)
	noRoom := false
	d.rounds++
	c := &call{asked: d.spare, round: d.rounds, began: now}
	d.spare = asked{}
	d.open = len(d.subs) - d.resting
	for l := d.ready.first; l != nil && len(c.wants) < wantsMax; {
		b := l.of
		l = l.next
		if d.open == 0 { // no subscription has room, whatever the queue
			noRoom = true
			break
		}
		switch {
		case b.apart && len(c.wants) > 0:
			continue // it comes first next time
		case len(d.calls) >= callsMax:
			d.failQueue(b, errAllHang, now)
			continue
		}
		if !d.want(c, b, now) {
			noRoom = true // it keeps its place, so that it is first when there is room
			d.park(b, now)
			continue
		}
		d.unready(b)
		b.busy, b.hinted = true, false
		b.countSpread(0, 1)
		if b.apart {
			break
		}
	}
	d.wakeOnRoom.Store(noRoom)
	if len(c.wants) == 0 {
		d.spare = c.asked
		return nil
	}
	d.next = 0
	if d.ready.first == nil || len(c.wants) < wantsMax && d.open > 0 && !c.beliefs[0].apart { // none is left for the next call
		d.next = d.moment(now.Add(d.caps.Pace))
	}
	return c
}

// behind reports whether there is room for more of a backlog, which does not wait for the
// pace. Called with d.mu held.
func (d *Dispatcher) behind(now time.Time) bool {
	for l := d.ready.first; l != nil; l = l.next {
		b := l.of
		if !b.more {
			continue
		}
		d.wakeOnRoom.Store(true)
		for seat := b.seats.first; seat != nil; seat = seat.next {
			s := seat.of
			if n, _ := s.room(b.queue, b.held); n > 0 && !d.over(s, now) {
				return true
			}
		}
	}
	return false
}

func passed(t, now time.Time) bool { return !t.After(now) }

// want adds to a call what the subscriptions of a queue have room for. It reports whether it
// added anything. Called with d.mu held.
func (d *Dispatcher) want(c *call, b *belief, now time.Time) bool {
	first, reached, most := len(c.wants), 0, engine.MaxLease
	b.cut = false
	for l := b.seats.first; l != nil; l = l.next {
		s := l.of
		if s.fullRound == d.rounds || d.over(s, now) {
			continue
		}
		if s.isLease() && len(s.answer.Messages) > 0 && b.answered > s.began && !b.more {
			d.leftOut(s) // it has brought what it had
			continue
		}
		w := c.wantOf(first, s)
		if s.spreads() {
			d.visit(s)
		}
		n, full := s.room(b.queue, b.held)
		if full {
			s.fullRound = d.rounds
			d.open--
			continue
		}
		n = min(n, most)
		if s.spreads() {
			n = s.spread(n)
		}
		if n <= 0 {
			if s.isLease() {
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
		s.onTheWay += n
		s.calls++
		addTaker(&c.wants[w], d.workerOf(s), n)
		most -= n
		c.shares = append(c.shares, share{s, w, n, d.workerOf(s)})
	}
	return reached > 0
}

// visit notes that the current round has reached a subscription that spreads. Called with
// d.mu held.
func (d *Dispatcher) visit(s *Subscription) {
	if s.round == d.rounds {
		return
	}
	if s.isLease() && s.round != 0 && d.caps.GiveBack {
		s.answer.widen() // earlier rounds did not bring enough
	}
	s.round, s.leftToReach = d.rounds, s.readyQueues
}

// spread returns the share of the room n for one of the subscription's ready queues that the
// round has not reached yet. Called with d.mu held.
func (s *Subscription) spread(n int) int {
	left := max(s.leftToReach, 1)
	s.leftToReach--
	return (n + left - 1) / left
}

// failQueue fails the subscriptions of a queue that cannot be asked now. Called with d.mu
// held.
func (d *Dispatcher) failQueue(b *belief, err error, now time.Time) {
	d.unready(b)
	d.place(b, d.learn(b, &engine.Granted{Err: err}, time.Time{}, now, now))
	for l := b.seats.first; l != nil; l = l.next {
		if s := l.of; !s.leaving && (!s.isLease() || s.allFailing()) {
			d.fail(&d.failed, s, err)
		}
	}
}

// conclude updates the beliefs from the answer to a call, distributes the leases, and makes
// the callbacks of workers after releasing the lock.
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
	failed, failure := d.learnAll(c, &g, err, now)
	orphans := d.share(c, &g, now)
	if d.closed {
		failed = 0
	}
	queue, over := c.wants[0].Queue, len(c.handed) == 0 && len(orphans) == 0
	if over {
		d.end(c)
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
		d.end(c)
	}
	if len(orphans) == 0 {
		end()
	} else {
		d.tasks.Go(end) // the engine may be slow, and others wait
	}
}

// end ends a call after its messages have been delivered or released: workers that wait for
// their last call may now leave. Called with d.mu held.
func (d *Dispatcher) end(c *call) {
	for _, sh := range c.shares {
		if !sh.sub.isLease() {
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

// learnAll updates the beliefs from the answer to a call. It returns how many wants failed,
// and the last error. Called with d.mu held.
func (d *Dispatcher) learnAll(c *call, g *engine.Grant, err error, now time.Time) (failed int, failure error) {
	if err != nil {
		g.Queues = slices.Repeat([]engine.Granted{{Err: err}}, len(c.wants))
	}
	for i, b := range c.beliefs {
		got := &g.Queues[i]
		again := d.learn(b, got, g.Now, c.began, now)
		b.answered = c.round
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

// share distributes the answer to a call, and returns the leases that no subscription has
// room for. Called with d.mu held.
func (d *Dispatcher) share(c *call, g *engine.Grant, now time.Time) (orphans []engine.Lease) {
	var left []leftover
	for _, sh := range c.shares {
		s, b := sh.sub, c.beliefs[sh.want]
		ls := cut(&g.Queues[sh.want].Messages, sh.worker, sh.n)
		n := len(ls)
		if !c.slow {
			s.onTheWay -= sh.n
		}
		switch {
		case s.gone || s.leaving && !s.isLease() || !s.sameOptions(&c.wants[sh.want]) || d.workerOf(s) != sh.worker:
			n = 0 // it has left, drains, or is in another turn with other options
		case c.slow || s.isLease():
			n = min(n, s.canTake(b.queue, b.held))
		}
		if !s.gone {
			d.explain(c, b, s)
			if n > 0 {
				d.deliver(&c.handed, s, ls[:n:n], g.Now, c.began)
			}
		}
		if s.isLease() {
			s.done()
		}
		if n < len(ls) {
			left = append(left, leftover{sh.want, ls[n:]})
		}
	}
	for i := range g.Queues {
		for ls := &g.Queues[i].Messages; len(*ls) > 0; {
			left = append(left, leftover{i, cut(ls, (*ls)[0].Worker, len(*ls))})
		}
	}
	for _, l := range left {
		orphans = append(orphans, d.rehome(c, l.want, l.leases, g.Now, now)...)
	}
	return orphans
}

// explain passes on to a subscription what an answer reports on a queue besides its
// messages. Called with d.mu held.
func (d *Dispatcher) explain(c *call, b *belief, s *Subscription) {
	if b.expired > 0 || b.died > 0 {
		d.note(&c.handed, s, b.queue, b.expired, b.died) // to one subscription only, so that none is counted twice
		b.expired, b.died = 0, 0
	}
	s.hold(b)
	if b.err != nil && s.failReported != c.round && (!s.isLease() || s.allFailing()) {
		s.failReported = c.round
		d.fail(&c.handed, s, b.err)
	}
}

// rehome offers leftover leases of a worker to its other subscriptions of the queue, and
// returns the rest. Called with d.mu held.
func (d *Dispatcher) rehome(c *call, want int, ls []engine.Lease, engineNow, now time.Time) []engine.Lease {
	w, b := &c.wants[want], c.beliefs[want]
	for l := b.seats.first; l != nil && len(ls) > 0; l = l.next {
		s := l.of
		if !s.sameOptions(w) || d.workerOf(s) != ls[0].Worker || d.over(s, now) || s.isLease() && s.answer.ended {
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

// drop removes a call from those under way. Called with d.mu held.
func (d *Dispatcher) drop(c *call) {
	for i := range d.calls {
		if d.calls[i] == c {
			d.calls = append(d.calls[:i], d.calls[i+1:]...)
			return
		}
	}
}
