package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
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

// leaseThere leases from an engine that can wait by itself.
func (d *Dispatcher) leaseThere(ctx context.Context, lw engine.LeaseWaiter, w engine.Wait) (engine.Waited, error) {
	w.Queues = sorted(w.Queues)
	if err := d.beginThere(len(w.Queues)); err != nil {
		return engine.Waited{}, err
	}
	defer d.endThere(len(w.Queues))
	until := time.Now().Add(w.For)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	var late *time.Timer
	a := newAnswer(&w)
	for fails := 0; ; fails++ {
		sent := time.Now()
		got, err := lw.LeaseWait(waiting, there(w, until))
		switch {
		case err == nil:
			a.take(w.Queues, &got, sent)
		case d.ctx.Err() != nil:
			return engine.Waited{}, errClientClosed("lease")
		case waiting.Err() == nil:
			return a.Waited, err // what it was told nobody else is
		}
		if waiting.Err() != nil || a.ended || len(a.Messages) > 0 || !time.Now().Before(until) {
			return d.result(ctx, a)
		}
		if late == nil { // only the first answer is waited for in any case
			late = time.AfterFunc(time.Until(until.Add(pollGrace)), cancel)
			defer late.Stop()
		}
		if a.err == nil {
			fails = -1
			continue
		}
		duration.Sleep(waiting, min(FailPause(fails), time.Until(until)))
	}
}

// beginThere counts the queues of a lease that begins, and the lease as a task.
func (d *Dispatcher) beginThere(queues int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClientClosed("lease")
	}
	if err := d.countNames(queues); err != nil {
		return err
	}
	d.tasks.Add(1)
	return nil
}

func (d *Dispatcher) endThere(queues int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.namedQueues -= queues
	d.tasks.Done()
}

// there returns the next request for an engine that can wait by itself.
func there(w engine.Wait, until time.Time) engine.Wait {
	room := w.Room
	w.Max, w.Room, w.For = min(w.Max, engine.MaxLease), nil, max(0, min(pollWait, time.Until(until)))
	return within(w, room)
}

// within returns the request for no more messages of each queue than there is room for.
// Queues without room of their own are limited by Max alone.
func within(w engine.Wait, room map[string]int) engine.Wait {
	limited, most := 0, 0
	for q, n := range room {
		if !asks(w.Queues, q) {
			continue
		}
		limited++
		most += n
		if n < w.Max {
			if w.Room == nil {
				w.Room = make(map[string]int)
			}
			w.Room[q] = n
		}
	}
	if limited == len(w.Queues) {
		w.Max = min(w.Max, most)
	}
	return w
}

// take adds the engine's answer to a request sent at sent. It fails if no queue could be
// asked; if only some could, err says why until the next answer.
func (a *answer) take(queues []string, got *engine.Waited, sent time.Time) {
	failed := 0
	a.err = nil
	for _, t := range got.Told {
		if t.Err != nil {
			failed, a.err = failed+1, t.Err
		}
		if t.Expired > 0 || t.Died > 0 {
			a.noted(t.Queue, t.Expired, t.Died)
		}
		if t.Held && asks(queues, t.Queue) {
			a.tell(t.Queue).Held = true
		}
	}
	a.NextDue = got.NextDue
	if len(got.Messages) > 0 {
		a.add(got.Messages, got.Now, sent.Add(max(0, got.Waited)))
		a.NextDue = time.Time{}
	} else if a.Now = got.Now; failed == len(queues) {
		a.end()
	}
}

// asks reports whether a queue is one of those that a lease or worker asks for, which are
// sorted.
func asks(queues []string, queue string) bool {
	_, is := slices.BinarySearch(queues, queue)
	return is
}

// poller serves a worker from an engine that can wait by itself: one long poll at a time, for
// as many messages as there is room for.
type poller struct {
	d      *Dispatcher
	lw     engine.LeaseWaiter
	s      *Subscription
	ctx    context.Context
	cancel context.CancelFunc
	freed  chan struct{} // holds a token when there may be more room
	ended  chan struct{} // closed when run ends
	fails  int
	held   map[string]struct{} // queues with more held back, as of the last answer

	mu   sync.Mutex // held during a callback
	gone bool       // no callback runs any more
}

// poll starts a poller. Called with d.mu held.
func (d *Dispatcher) poll(lw engine.LeaseWaiter, s *Subscription) Leave {
	p := &poller{d: d, lw: lw, s: s, freed: make(chan struct{}, 1), ended: make(chan struct{}), held: make(map[string]struct{})}
	p.ctx, p.cancel = context.WithCancel(d.ctx)
	d.pollers[p] = struct{}{}
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

// leave ends the poller.
func (p *poller) leave(patience time.Duration) {
	p.cancel()
	await(context.Background(), patience, p.ended)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	delete(p.d.pollers, p)
}

// tell runs callbacks of the worker, unless it has left.
func (p *poller) tell(callbacks func(*Subscription)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		callbacks(p.s)
	}
}

func (p *poller) run() {
	for p.ctx.Err() == nil {
		w := p.demand()
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
			p.tell(func(s *Subscription) { s.Fail(err) })
		}
		if err != nil {
			p.rest(err)
		} else {
			p.fails = 0
		}
	}
	if p.d.ctx.Err() != nil {
		p.tell(func(s *Subscription) { s.Fail(errClientClosed("lease")) })
	}
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
	var watch sync.WaitGroup
	watch.Go(func() {
		if p.gains(out, ctx.Done()) {
			cancel(errFreed)
		}
	})
	got, err := p.lw.LeaseWait(ctx, w)
	cancel(nil)
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
	if duration.Await(over, pollMin) {
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
	n, _ := p.s.room(queue, held)
	return n
}

// demand returns a request for what there is room for; Max is 0 when there is none.
func (p *poller) demand() engine.Wait {
	s := p.s
	room := make(map[string]int)
	for q := range s.Room.Of {
		room[q] = p.room(q)
	}
	for q := range p.held {
		room[q] = p.room(q)
	}
	w := engine.Wait{Queues: s.Queues, Max: min(p.room(""), engine.MaxLease), For: pollWait, TTR: s.TTR, Remote: s.Remote, Worker: s.Worker}
	return within(w, room)
}

// rest pauses after a failure.
func (p *poller) rest(err error) {
	pause := FailPause(p.fails)
	p.fails++
	p.d.log.Warn("the engine could not be asked for messages", "error", err, "again_in", pause)
	duration.Sleep(p.ctx, pause)
}

// deliver passes on an answer. It returns an error if no message came and a queue could not
// be asked.
func (p *poller) deliver(got engine.Waited, sent time.Time) (failure error) {
	p.noteHeld(&got)
	for _, t := range got.Told {
		failure = cmp.Or(t.Err, failure)
	}
	back := got.Messages
	p.tell(func(s *Subscription) {
		for _, t := range got.Told {
			if t.Expired > 0 || t.Died > 0 {
				s.Noted(t.Queue, t.Expired, t.Died)
			}
		}
		if len(got.Messages) > 0 && p.ctx.Err() == nil {
			s.Deliver(got.Messages, got.Now, sent.Add(max(0, got.Waited)))
			back = nil
		}
		if failure != nil {
			s.Fail(failure)
		}
	})
	p.d.release(back)
	if len(got.Messages) > 0 {
		return nil
	}
	return failure
}

// noteHeld notes which queues have more held back. A queue that brought messages without
// such a report has nothing held back.
func (p *poller) noteHeld(got *engine.Waited) {
	for i := 0; i < len(got.Messages) && len(p.held) > 0; i++ {
		delete(p.held, got.Messages[i].Queue)
	}
	for _, t := range got.Told {
		if t.Held && asks(p.s.Queues, t.Queue) {
			p.held[t.Queue] = struct{}{}
		}
	}
	p.s.Room.Held.Store(int64(len(p.held)))
}
