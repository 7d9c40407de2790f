package dispatch

import (
	"context"
	"errors"
	"slices"
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
	held   map[string]struct{} // queues of which more is held back, as the last messages told

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
		w := p.demand()
		if w.Max == 0 && p.s.Once {
			break // it has all that it wants
		}
		if w.Max == 0 {
			select {
			case <-p.freed:
			case <-p.ctx.Done():
			}
			continue
		}
		sent := time.Now()
		got, err := p.wait(w)
		switch {
		case err == nil:
			err = p.hand(got, sent)
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
func (p *poller) wait(w engine.Wait) (engine.Waited, error) {
	var out []string
	for q, n := range w.Room {
		if n == 0 {
			out = append(out, q)
		}
	}
	if len(out) == 0 {
		return p.lw.LeaseWait(p.ctx, w)
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		if p.gains(out, over) {
			cancel(errFreed)
		}
	})
	got, err := p.lw.LeaseWait(ctx, w)
	close(over)
	watch.Wait()
	if err != nil && context.Cause(ctx) == errFreed {
		return engine.Waited{}, errFreed
	}
	return got, err
}

// errFreed ends a poll because a queue that it leaves out has room.
var errFreed = errors.New("there is more room")

// gains waits until one of the queues that were left out has room, or the poll is over.
func (p *poller) gains(out []string, over <-chan struct{}) bool {
	timer := time.NewTimer(pollMin)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
		return false
	}
	for {
		for _, q := range out {
			if p.s.room(q, 0) > 0 {
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

// demand is what there is room for; its Max is 0 when there is none.
func (p *poller) demand() engine.Wait {
	s := p.s
	w := engine.Wait{Queues: s.Queues, Max: min(s.room("", 0), engine.MaxLease), For: pollWait, TTR: s.TTR, Remote: s.Remote}
	if s.Once {
		w.For = max(0, min(w.For, time.Until(s.Until)))
	}
	most, limited := 0, 0
	limit := func(q string) {
		n := s.room(q, 0)
		most += n
		limited++
		if n >= w.Max {
			return
		}
		if w.Room == nil {
			w.Room = make(map[string]int)
		}
		w.Room[q] = n
	}
	for _, q := range s.Limited {
		limit(q)
	}
	for q := range p.held {
		if _, is := slices.BinarySearch(s.Limited, q); !is {
			limit(q)
		}
	}
	if limited == len(s.Queues) {
		w.Max = min(w.Max, most)
	}
	return w
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
func (p *poller) hand(got engine.Waited, sent time.Time) (failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failed := 0
	for _, t := range got.Told {
		if t.Err != nil {
			failed, failure = failed+1, t.Err
		}
		if p.s.Noted != nil && (t.Expired > 0 || t.Died > 0) {
			p.s.Noted(t.Queue, t.Expired, t.Died)
		}
	}
	p.hear(&got)
	p.outlook = Outlook{Now: got.Now, Next: got.NextDue, Err: failure}
	var back []engine.Lease
	if p.gone || p.leaving && !p.s.Once {
		back = got.Messages
	} else if len(got.Messages) > 0 {
		p.s.Deliver(got.Messages, got.Now, sent)
	}
	if failed > 0 && (!p.s.Once || failed == len(p.s.Queues)) {
		p.s.Fail(failure)
	}
	if len(back) > 0 {
		p.mu.Unlock()
		p.d.release(back)
		p.mu.Lock()
	}
	if len(got.Messages) > 0 {
		return nil
	}
	return failure
}

// hear notes of which queues more is held back. What is not told of a queue of which
// messages come is not so.
func (p *poller) hear(got *engine.Waited) {
	if p.s.Held == nil {
		return
	}
	for i := 0; i < len(got.Messages) && len(p.held) > 0; i++ {
		q := got.Messages[i].Queue
		if _, held := p.held[q]; held {
			delete(p.held, q)
			p.s.Held(q, false)
		}
	}
	for _, t := range got.Told {
		if _, asked := slices.BinarySearch(p.s.Queues, t.Queue); t.Held && asked {
			if p.held == nil {
				p.held = make(map[string]struct{})
			}
			p.held[t.Queue] = struct{}{}
			p.s.Held(t.Queue, true)
		}
	}
}
