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
	// pollWait is the longest duration of a long poll.
	pollWait = 20 * time.Second
	// pollMin is how long a poll lasts at least before it is cut because a queue that it
	// leaves out has room again.
	pollMin = 10 * time.Millisecond
	// pollGrace is how late a poll may return before it is cut.
	pollGrace = time.Second
)

// poller serves one subscription from an engine that can wait by itself: one long poll at a
// time, for as many messages as there is room for.
type poller struct {
	d      *Dispatcher
	lw     engine.LeaseWaiter
	s      *Subscription
	ctx    context.Context
	cancel context.CancelFunc
	freed  chan struct{} // holds a token when there may be more room
	ended  chan struct{} // closed when run ends
	fails  int
	asked  bool
	held   map[string]struct{} // worker: queues with more held back, as of the last answer

	outlook Outlook // guarded by Dispatcher.mu
}

// poll starts a poller.
func (d *Dispatcher) poll(lw engine.LeaseWaiter, s *Subscription) Leave {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.admit(s); err != nil {
		return d.refuse(s, err)
	}
	p := &poller{d: d, lw: lw, s: s, freed: make(chan struct{}, 1), ended: make(chan struct{}), held: make(map[string]struct{})}
	p.ctx, p.cancel = context.WithCancel(d.ctx)
	d.subs[s] = struct{}{}
	if !s.isLease() {
		d.pollers[p] = struct{}{}
	}
	d.tasks.Go(func() {
		defer close(p.ended)
		p.run()
	})
	return p.leave
}

// look makes the poller check for room.
func (p *poller) look() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// leave ends the poller. The poll of a lease whose wait is over returns by itself.
func (p *poller) leave(ctx context.Context, patience time.Duration) Outlook {
	d := p.d
	d.mu.Lock()
	p.s.leaving = true
	d.mu.Unlock()
	p.look()
	if p.s.isLease() {
		await(ctx, pollGrace, p.ended)
	}
	p.cancel()
	if patience == 0 {
		patience = leaseTimeout
	}
	late := !await(ctx, patience, p.ended)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.depart(p.s)
	delete(d.pollers, p)
	d.dismiss(p.s)
	o := p.outlook
	if late && ctx.Err() == nil {
		o.Err = errNoAnswer
	}
	return o
}

// next reports whether to poll again.
func (p *poller) next() bool {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	s := p.s
	return !s.leaving && p.ctx.Err() == nil &&
		!(s.isLease() && (s.ended() || p.asked && !time.Now().Before(s.until)))
}

func (p *poller) run() {
	for p.next() {
		w := p.demand()
		if w.Max == 0 && p.s.isLease() {
			break // it is full
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
			err = p.deliver(got, sent)
		case p.ctx.Err() != nil || err == errFreed:
			err = nil
		default:
			p.fail(err)
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

// answered notes that all queues of a lease have been asked.
func (p *poller) answered() {
	if p.s.isLease() && !p.asked {
		p.asked = true
		close(p.s.asked)
	}
}

// fail reports that the engine could not be asked.
func (p *poller) fail(err error) {
	var failed []handed
	p.d.mu.Lock()
	if !p.s.gone {
		p.d.fail(&failed, p.s, err)
	}
	p.d.mu.Unlock()
	p.d.tell(failed)
}

// wait polls once. If the poll leaves out a queue that has no room, it ends as soon as the
// queue has room: that queue must not wait for the others.
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

// errFreed ends a poll when a queue that it leaves out has room.
var errFreed = errors.New("there is more room")

// gains waits until one of the queues left out has room, or the poll is over.
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
			if p.room(q) > 0 {
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

// room returns how many messages of a queue there is room for. queue "" stands for any queue
// that is not held and has no slots of its own.
func (p *poller) room(queue string) int {
	_, held := p.held[queue]
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	n, _ := p.s.room(queue, held)
	return n
}

// limited returns the queues that may have less room than others.
func (p *poller) limited() (limited []string) {
	if a := p.s.answer; a != nil {
		for q := range a.of {
			if p.asks(q) {
				limited = append(limited, q)
			}
		}
		return limited
	}
	for q := range p.s.Room.Of {
		limited = append(limited, q)
	}
	for q := range p.held {
		if p.s.Room.Of[q] == nil {
			limited = append(limited, q)
		}
	}
	return limited
}

// demand returns a request for what there is room for; Max is 0 when there is none.
func (p *poller) demand() engine.Wait {
	s := p.s
	w := engine.Wait{Queues: s.Queues, Max: min(p.room(""), engine.MaxLease), For: pollWait, TTR: s.TTR, Remote: s.Remote}
	if s.isLease() {
		w.For = max(0, min(w.For, time.Until(s.until)))
	}
	most := 0
	limited := p.limited()
	for _, q := range limited {
		n := p.room(q)
		most += n
		if n >= w.Max {
			continue
		}
		if w.Room == nil {
			w.Room = make(map[string]int)
		}
		w.Room[q] = n
	}
	if len(limited) == len(s.Queues) {
		w.Max = min(w.Max, most)
	}
	return w
}

// rest pauses after a failure.
func (p *poller) rest(err error) {
	pause := FailPause(p.fails)
	p.fails++
	if !p.s.isLease() { // a lease gets the error
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

// deliver passes on an answer. It returns an error if no message came and a queue could not
// be asked.
func (p *poller) deliver(got engine.Waited, sent time.Time) (failure error) {
	d, s := p.d, p.s
	sent = sent.Add(max(0, got.Waited))
	var all []handed
	var back []engine.Lease
	failed := 0
	p.noteHeld(&got)
	d.mu.Lock()
	for _, t := range got.Told {
		if t.Err != nil {
			failed, failure = failed+1, t.Err
		}
		if s.gone {
			continue
		}
		if t.Expired > 0 || t.Died > 0 {
			d.note(&all, s, t.Queue, t.Expired, t.Died)
		}
		if t.Held && s.isLease() && p.asks(t.Queue) {
			s.answer.tell(t.Queue).Held = true
		}
	}
	p.outlook = Outlook{Now: got.Now, Next: got.NextDue, Err: failure}
	switch {
	case s.gone || s.leaving && !s.isLease():
		back = got.Messages
	case len(got.Messages) > 0:
		d.deliver(&all, s, got.Messages, got.Now, sent)
	}
	if failed > 0 && !s.gone && (!s.isLease() || failed == len(s.Queues)) {
		d.fail(&all, s, failure)
	}
	d.mu.Unlock()
	d.tell(all)
	d.release(back)
	if len(got.Messages) > 0 {
		return nil
	}
	return failure
}

// asks reports whether a queue is one of the subscription's.
func (p *poller) asks(queue string) bool {
	_, is := slices.BinarySearch(p.s.Queues, queue)
	return is
}

// noteHeld notes which queues have more held back. A queue that brought messages without
// such a report has nothing held back.
func (p *poller) noteHeld(got *engine.Waited) {
	if p.s.isLease() {
		return
	}
	for i := 0; i < len(got.Messages) && len(p.held) > 0; i++ {
		delete(p.held, got.Messages[i].Queue)
	}
	for _, t := range got.Told {
		if t.Held && p.asks(t.Queue) {
			p.held[t.Queue] = struct{}{}
		}
	}
}
