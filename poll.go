package tarry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// pollWait is how long one long poll lasts.
const pollWait = 20 * time.Second

// poller serves one subscription from an engine whose other side can wait: one
// long poll at a time, for as much as there is room.
type poller struct {
	d     *dispatcher
	lw    engine.LeaseWaiter
	s     *subscription
	freed chan struct{} // holds one token: there may be more room
	fails int
}

// poll starts a poller. Called with d.mu held.
func (d *dispatcher) poll(lw engine.LeaseWaiter, s *subscription) (unsubscribe func()) {
	ctx, cancel := context.WithCancel(d.ctx)
	p := &poller{d: d, lw: lw, s: s, freed: make(chan struct{}, 1)}
	d.pollers[p] = struct{}{}
	var done sync.WaitGroup
	done.Add(1)
	d.tasks.Go(func() {
		defer done.Done()
		p.run(ctx)
	})
	return func() {
		cancel()
		done.Wait()
		d.mu.Lock()
		delete(d.pollers, p)
		d.mu.Unlock()
	}
}

func (p *poller) run(ctx context.Context) {
	for ctx.Err() == nil {
		wants, most := p.wants()
		if most == 0 {
			select {
			case <-p.freed:
			case <-ctx.Done():
			}
			continue
		}
		wait := pollWait
		if p.s.nowait {
			wait = 0
		}
		sent := time.Now()
		g, err := p.wait(ctx, wants, most, wait)
		if err != nil {
			if ctx.Err() == nil && err != errFreed {
				p.failed(ctx, err)
			}
			continue
		}
		p.fails = 0
		p.hand(wants, g, sent)
	}
}

// wait polls once. A poll that had to leave out a queue for want of room ends when
// there may be room again, or that queue would wait as long as the others do.
func (p *poller) wait(ctx context.Context, wants []engine.Want, most int, wait time.Duration) (engine.Grant, error) {
	if len(wants) == len(p.s.queues) {
		return p.lw.LeaseWait(ctx, wants, most, wait)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.freed:
			cancel(errFreed)
		case <-over:
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

// errFreed ends a poll because there is more room.
var errFreed = errors.New("there is more room")

// wants asks each queue for what there is room for, were it the only one.
func (p *poller) wants() (wants []engine.Want, most int) {
	for _, q := range p.s.queues {
		if n := min(p.s.room(q, 0), MaxLease); n > 0 {
			wants = append(wants, engine.Want{Queue: q, Max: n, TTR: p.s.ttr, Remote: p.s.remote})
			most = max(most, n)
		}
	}
	return wants, most
}

func (p *poller) failed(ctx context.Context, err error) {
	p.s.fail(err)
	pause := failPause(p.fails)
	p.fails++
	p.d.log.Warn("the engine could not be asked for messages", "error", err, "again_in", pause)
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// hand delivers what came, even when the subscriber is leaving: it settles or
// releases what it gets.
func (p *poller) hand(wants []engine.Want, g engine.Grant, sent time.Time) {
	var next time.Time
	for i, got := range g.Queues {
		if got.Err != nil {
			p.s.fail(got.Err)
		}
		if p.s.noted != nil && (got.Expired > 0 || got.Died > 0) {
			p.s.noted(wants[i].Queue, got.Expired, got.Died)
		}
		if len(got.Messages) > 0 {
			p.s.deliver(got.Messages, g.Now, sent)
		}
		if !got.NextDue.IsZero() && (next.IsZero() || got.NextDue.Before(next)) {
			next = got.NextDue
		}
	}
	if p.s.asked != nil {
		p.s.asked(g.Now, next)
	}
}
