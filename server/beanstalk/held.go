package beanstalk

import (
	"container/heap"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// job is a job that a connection holds, or held until it timed out.
type job struct {
	id       engine.ID
	token    string
	tube     *tube
	due      time.Time     // its place in line
	ttr      time.Duration // at most engine.MaxTTR
	until    time.Time     // no later than the lease ends
	timedOut bool          // kept only for a delete
	at       int           // in held.live
	answer   uint64        // how many bytes of the connection's answers show it
}

const (
	mostTimedOut = 1000        // about how many jobs that timed out are kept
	margin       = time.Second // how long before a job times out reserve answers DEADLINE_SOON
)

// held holds the jobs of a connection. A timer marks those that time out.
type held struct {
	s   *Server
	ctx context.Context

	mu    sync.Mutex
	jobs  map[engine.ID]*job
	live  live // by until: those that have not timed out
	timer *time.Timer
	next  time.Time // when the timer fires; zero: it is not set
}

// add holds a job.
func (h *held) add(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.jobs == nil {
		h.jobs = make(map[engine.ID]*job)
	}
	if old := h.jobs[j.id]; old != nil && !old.timedOut {
		heap.Remove(&h.live, old.at)
	}
	h.jobs[j.id] = j
	if j.timedOut {
		return
	}
	heap.Push(&h.live, j)
	h.wake()
}

// live is a heap of jobs: the first times out first.
type live []*job

func (l live) Len() int           { return len(l) }
func (l live) Less(a, b int) bool { return l[a].until.Before(l[b].until) }
func (l live) Swap(a, b int)      { l[a], l[b] = l[b], l[a]; l[a].at, l[b].at = a, b }
func (l *live) Push(j any)        { j.(*job).at = len(*l); *l = append(*l, j.(*job)) }

func (l *live) Pop() any {
	last := len(*l) - 1
	j := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return j
}

// wake sets the timer for the job that times out first, unless it fires earlier, for one that was
// taken meanwhile. Called with h.mu held.
func (h *held) wake() {
	first := h.live[0].until
	if !h.next.IsZero() && !first.Before(h.next) {
		return
	}
	h.next = first
	if h.timer == nil {
		h.timer = time.AfterFunc(time.Until(first), h.woken)
		return
	}
	h.timer.Reset(time.Until(first))
}

// woken is called by the timer.
func (h *held) woken() {
	h.expire(time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = time.Time{}
	if len(h.live) > 0 {
		h.wake()
	}
}

// expire marks the jobs that have timed out, and forgets them when they are many.
func (h *held) expire(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.live) > 0 && !now.Before(h.live[0].until) {
		j := heap.Pop(&h.live).(*job)
		j.timedOut = true
		h.s.counts.timeouts.Add(1)
		h.s.notes.change(j.id, func(n *note) { n.timeouts++ })
	}
	if len(h.jobs) > 2*len(h.live)+mostTimedOut {
		maps.DeleteFunc(h.jobs, func(_ engine.ID, j *job) bool { return j.timedOut })
	}
}

// take removes a job and returns it, late: even if it has timed out; nil: it is not held.
func (h *held) take(id engine.ID, late bool) *job {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := h.jobs[id]
	if j == nil || j.timedOut && !late {
		return nil
	}
	delete(h.jobs, id)
	if !j.timedOut {
		heap.Remove(&h.live, j.at)
	}
	return j
}

// find returns a job that is held; nil: it is not.
func (h *held) find(id engine.ID) *job {
	h.mu.Lock()
	defer h.mu.Unlock()
	if j := h.jobs[id]; j != nil && !j.timedOut {
		return j
	}
	return nil
}

// soonest returns when the first of the held jobs times out; zero: none is held.
func (h *held) soonest() (first time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.live) > 0 {
		first = h.live[0].until
	}
	return first
}

// giveBack makes all jobs ready, since the connection has ended. If the answer with a job was
// written, its attempt counts: a job that kills workers must not come again for ever.
func (h *held) giveBack(sent uint64) {
	h.mu.Lock()
	if h.timer != nil {
		h.timer.Stop()
	}
	var back []engine.Settlement
	for _, j := range h.live {
		one := engine.Settlement{Token: j.token, Do: engine.Release}
		if j.answer <= sent {
			one.Do, one.When = engine.Retry, &engine.When{At: j.due}
		}
		back = append(back, one)
	}
	h.live = nil
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), lastGrace)
	defer cancel()
	for some := range slices.Chunk(back, engine.MaxBatch) {
		if _, err := h.s.c.Settle(ctx, some); err != nil {
			h.s.warn("jobs of a connection that has ended stay reserved until they time out", "count", len(some), "error", err)
		}
	}
}

// delete carries out delete: of a job that the connection holds, or of one that nobody holds.
func (c *conn) delete(a args) (string, error) {
	j := c.held.take(a.id, true)
	if j == nil {
		return c.cancel(a.id)
	}
	_, err := c.settle(j, engine.Settlement{Do: engine.Ack})
	switch {
	case errors.Is(err, engine.ErrLeaseLost): // perhaps before its time, if a clock was set
		return c.cancel(a.id)
	case err != nil:
		return "", err
	}
	return c.deleted(a.id, j.tube)
}

// cancel deletes a job that nobody holds.
func (c *conn) cancel(id engine.ID) (string, error) {
	queue, err := c.queueOf(id)
	if err == nil {
		err = c.allows(access.Push|access.Operate, queue)
	}
	if err == nil {
		err = c.s.c.Cancel(c.ctx, engine.Ref{Queue: queue, ID: id, By: c.name()})
	}
	if queue != "" && c.operator() {
		c.audit("cancel", queue, err, "message", id.String())
	}
	if err != nil {
		return "", err
	}
	return c.deleted(id, c.s.tubes.known(queue))
}

// deleted forgets a job.
func (c *conn) deleted(id engine.ID, t *tube) (string, error) {
	c.s.notes.drop(id)
	t.deletes.Add(1)
	c.s.tubes.removeIfEmpty(c.ctx, t)
	return "DELETED", nil
}

// settle settles a job that was taken from those that the connection holds; nil: it held none.
// The connection holds it again if that fails, unless the lease is lost.
func (c *conn) settle(j *job, one engine.Settlement) (engine.State, error) {
	if j == nil {
		return 0, engine.ErrNotFound
	}
	one.Token = j.token
	var state engine.State
	err := c.allows(access.Work, j.tube.name)
	if err == nil {
		state, err = c.s.settle(c.ctx, one)
	}
	if err != nil && !errors.Is(err, engine.ErrLeaseLost) {
		c.held.add(j)
	}
	return state, err
}

// settle settles one lease.
func (s *Server) settle(ctx context.Context, one engine.Settlement) (engine.State, error) {
	got, err := s.c.Settle(ctx, []tarry.Settlement{one})
	if err != nil {
		return 0, err
	}
	return got[0].State, got[0].Err
}

// release carries out release.
func (c *conn) release(a args) (string, error) {
	j, when := c.held.take(a.id, false), engine.When{In: a.delay}
	if j != nil && a.delay == 0 {
		when.At = j.due // keeps its place in line
	}
	state, err := c.settle(j, engine.Settlement{Do: engine.Retry, When: &when, Priority: &a.pri})
	if err != nil {
		return "", err
	}
	c.s.notes.change(j.id, func(n *note) {
		n.releases++
		n.setDelay(a.delay)
	})
	if state == engine.Dead { // its attempts are used up
		return "BURIED", nil
	}
	return "RELEASED", nil
}

// bury carries out bury.
func (c *conn) bury(a args) (string, error) {
	j := c.held.take(a.id, false)
	if _, err := c.settle(j, engine.Settlement{Do: engine.Bury, Priority: &a.pri}); err != nil {
		return "", err
	}
	c.s.notes.change(j.id, func(n *note) { n.buries++ })
	return "BURIED", nil
}

// touch carries out touch.
func (c *conn) touch(a args) (string, error) {
	j, asked := c.held.take(a.id, false), time.Now()
	if _, err := c.settle(j, engine.Settlement{Do: engine.Extend}); err != nil {
		return "", err
	}
	j.until = asked.Add(j.ttr)
	c.held.add(j)
	return "TOUCHED", nil
}
