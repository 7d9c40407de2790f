package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

const (
	// pollWait is how long one long poll lasts at most.
	pollWait = 20 * time.Second
	// pollMin is how long one lasts before it is cut because a queue has room again.
	pollMin = 10 * time.Millisecond
	// pollGrace is how much later than asked for a poll may come back before it is cut.
	pollGrace = time.Second
)

// poller serves one subscription from an engine whose other side can wait: one
// long poll at a time, for as much as there is room.
type poller struct {
	d      *Dispatcher
	lw     engine.LeaseWaiter
	s      *Subscription
	ctx    context.Context
	cancel context.CancelFunc
	freed  chan struct{} // holds one token: there may be more room
	ended  chan struct{} // closed when nothing comes any more
	fails  int

	mu      sync.Mutex
	leaving bool // no further poll is begun
	gone    bool // what comes is given back
	asked   bool
	outlook Outlook
}

// poll starts a poller.
func (d *Dispatcher) poll(lw engine.LeaseWaiter, s *Subscription) Leave {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.refuse(s)
	}
	p := &poller{d: d, lw: lw, s: s, freed: make(chan struct{}, 1), ended: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(d.ctx)
	d.subs[s] = struct{}{}
	if !s.Once {
		d.pollers[p] = struct{}{}
	}
	d.tasks.Go(func() {
		defer close(p.ended)
		p.run()
	})
	return p.leave
}

// look has the poller see whether there is more room.
func (p *poller) look() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// leave ends the poller. The poll of one whose wait is over comes back by itself.
func (p *poller) leave(ctx context.Context, patience time.Duration) Outlook {
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.look()
	if p.s.Once {
		await(ctx, pollGrace, p.ended)
	}
	p.cancel()
	if patience == 0 {
		patience = leaseTimeout
	}
	late := !await(ctx, patience, p.ended)
	p.mu.Lock()
	p.gone = true
	o := p.outlook
	p.mu.Unlock()
	if late && ctx.Err() == nil {
		o.Err = errNoAnswer
	}
	p.d.mu.Lock()
	p.s.gone = true
	delete(p.d.pollers, p)
	delete(p.d.subs, p.s)
	p.d.mu.Unlock()
	return o
}

// next reports whether another poll is to be made.
func (p *poller) next() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.s
	return !p.leaving && p.ctx.Err() == nil &&
		!(s.Once && (s.Ctx.Err() != nil || p.asked && !time.Now().Before(s.Until)))
}

func (p *poller) run() {
	for p.next() {
		wants, most := p.wants()
		if most == 0 {
			select {
			case <-p.freed:
			case <-p.ctx.Done():
			}
			continue
		}
		wait := pollWait
		if p.s.Once {
			wait = max(0, min(wait, time.Until(p.s.Until)))
		}
		sent := time.Now()
		g, err := p.wait(wants, most, wait)
		switch {
		case err == nil:
			err = p.hand(wants, g, sent)
		case p.ctx.Err() != nil || err == errFreed:
			err = nil
		default:
			p.s.Fail(err)
		}
		p.answered()
		if err != nil {
			p.rest(err)
		} else {
			p.fails = 0
		}
	}
	p.answered()
}

// answered tells a subscription for one answer that all its queues have been asked.
func (p *poller) answered() {
	if p.s.Once && !p.asked {
		p.asked = true
		close(p.s.Asked)
	}
}

// wait polls once. A poll that had to leave out a queue for want of room ends when
// that queue has some, or it would wait as long as the others do.
func (p *poller) wait(wants []engine.Want, most int, wait time.Duration) (engine.Grant, error) {
	if len(wants) == len(p.s.Queues) {
		return p.lw.LeaseWait(p.ctx, wants, most, wait)
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		if p.gains(wants, over) {
			cancel(errFreed)
		}
	})
	g, err := p.lw.LeaseWait(ctx, wants, most, wait)
	close(over)
	watch.Wait()
	if err != nil && context.Cause(ctx) == errFreed {
		return engine.Grant{}, errFreed
	}
	return g, err
}

// errFreed ends a poll because a queue that it leaves out has room.
var errFreed = errors.New("there is more room")

// gains waits until a queue that is not among the wants has room, or the poll is over.
func (p *poller) gains(wants []engine.Want, over <-chan struct{}) bool {
	polled := make(map[string]bool, len(wants))
	for _, w := range wants {
		polled[w.Queue] = true
	}
	timer := time.NewTimer(pollMin)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
		return false
	}
	for {
		for _, q := range p.s.Queues {
			if !polled[q] && p.s.room(q, 0) > 0 {
				return true
			}
		}
		select {
		case <-p.freed:
		case <-over:
			return false
		}
	}
}

// wants asks each queue for what there is room for, were it the only one.
func (p *poller) wants() (wants []engine.Want, most int) {
	for _, q := range p.s.Queues {
		n, full := p.s.Room(q, 0)
		if full {
			return nil, 0
		}
		if n = min(n, engine.MaxLease); n > 0 {
			wants = append(wants, engine.Want{Queue: q, Max: n, TTR: p.s.TTR, Remote: p.s.Remote})
			most = max(most, n)
		}
	}
	return wants, most
}

// rest pauses after a failure.
func (p *poller) rest(err error) {
	pause := FailPause(p.fails)
	p.fails++
	if !p.s.Once { // whoever wants one answer gets the error
		p.d.log.Warn("the engine could not be asked for messages", "error", err, "again_in", pause)
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-p.ctx.Done():
			return
		case <-p.freed:
			if !p.next() {
				return
			}
		}
	}
}

// hand delivers what came. It fails when nothing came and a queue could not be asked.
func (p *poller) hand(wants []engine.Want, g engine.Grant, sent time.Time) (failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := Outlook{Now: g.Now}
	failed, came := 0, false
	var back []engine.Lease
	for i, got := range g.Queues {
		if got.Err != nil {
			failed, failure = failed+1, got.Err
		}
		if p.s.Noted != nil && (got.Expired > 0 || got.Died > 0) {
			p.s.Noted(wants[i].Queue, got.Expired, got.Died)
		}
		if len(got.Messages) > 0 {
			came = true
			if p.gone || p.leaving && !p.s.Once {
				back = append(back, got.Messages...)
			} else {
				p.s.Deliver(got.Messages, g.Now, sent)
			}
		}
		if !got.NextDue.IsZero() && (o.Next.IsZero() || got.NextDue.Before(o.Next)) {
			o.Next = got.NextDue
		}
	}
	o.Err = failure
	p.outlook = o
	if failed > 0 && (!p.s.Once || failed == len(g.Queues)) {
		p.s.Fail(failure)
	}
	if len(back) > 0 {
		p.mu.Unlock()
		p.d.release(back)
		p.mu.Lock()
	}
	if came {
		return nil
	}
	return failure
}
