package sqlengine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// surveys are the whole looks at queues that take their time: leases do not wait for them.
type surveys struct {
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	under  atomic.Bool // one is under way
}

// surveyWithin is how long the whole look at one queue may take.
const surveyWithin = 5 * time.Minute

// stop ends what is under way, and waits for it.
func (s *surveys) stop() {
	s.cancel()
	s.tasks.Wait()
}

// survey begins a whole look at each of queues at which one is due, one after the other. Of
// what that finds the queue's watchers are hinted.
func (e *Engine) survey(queues []int64) {
	s := &e.surveys
	if e.cfg.later != nil || !s.under.CompareAndSwap(false, true) {
		return
	}
	due := e.floors.due(queues)
	if len(due) == 0 {
		s.under.Store(false)
		return
	}
	s.tasks.Go(func() {
		defer s.under.Store(false)
		for _, q := range due {
			e.lookWhole(q)
		}
	})
}

func (e *Engine) lookWhole(queue int64) {
	ctx, cancel := context.WithTimeout(e.surveys.ctx, surveyWithin)
	defer cancel()
	g := e.floors.of([]int64{queue}, whole)
	sent := time.Now()
	now, heads, err := e.store.Heads(ctx, g.from)
	if err != nil { // it is due again later
		e.floors.drop(g)
		return
	}
	ms := e.clock(now).UnixMilli()
	e.floors.saw(g, heads, ms, e.present.besides(time.Since(sent)))
	for i := range heads {
		h := &heads[i]
		if e.told.sooner(h.Num, max(min(h.Waiting, h.Leased), h.Paused)) {
			e.watchers.Hint(h.Name)
		}
	}
}
