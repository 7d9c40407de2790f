package beanstalk

import (
	"errors"
	"math"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// kickPage is how many jobs are kicked in one call of the store.
const kickPage = 500

// kick carries out kick: of buried jobs, or of delayed ones if none is buried.
func (c *conn) kick(a args) {
	queue := c.use.name
	if !c.may(access.Operate, queue) {
		c.audit("redrive", queue, errForbidden)
		c.fail(errForbidden)
		return
	}
	kicked, err := c.kickState(engine.Dead, uint64(a.count))
	if kicked == 0 && err == nil {
		kicked, err = c.kickState(engine.Scheduled, uint64(a.count))
	}
	c.audit("redrive", queue, err, "count", kicked)
	if err != nil {
		c.fail(err)
		return
	}
	c.sayNumber("KICKED ", kicked)
}

// kickState makes up to n jobs ready that are in a state, the first ones first.
func (c *conn) kickState(state engine.State, n uint64) (kicked uint64, err error) {
	q := tarry.ListQuery{Queue: c.use.name, State: state}
	for more := true; more && kicked < n && err == nil; more = q.After != "" {
		q.Limit = int(min(n-kicked, kickPage))
		var p tarry.Page
		if p, err = c.s.c.ListPage(c.ctx, q); err == nil {
			var some uint64
			some, err = c.makeReady(p.Messages)
			kicked, q.After = kicked+some, p.Next
		}
	}
	return kicked, err
}

// makeReady makes jobs ready that are all buried or all delayed, and returns how many.
func (c *conn) makeReady(jobs []engine.Info) (n uint64, err error) {
	var buried []engine.ID
	for i := range jobs {
		m := &jobs[i]
		if m.State == engine.Dead {
			buried = append(buried, m.ID)
			continue
		}
		_, err := c.s.c.Reschedule(c.ctx, engine.Ref{Queue: m.Queue, ID: m.ID, IfState: engine.Scheduled}, tarry.In(0))
		switch {
		case err == nil:
			c.kicked(m)
			n++
		case !errors.Is(err, engine.ErrStale) && !errors.Is(err, engine.ErrNotFound):
			return n, err
		}
	}
	if len(buried) == 0 {
		return n, nil
	}
	r, err := c.s.c.Redrive(c.ctx, jobs[0].Queue, buried, 0)
	for i := 0; i < len(jobs) && r.Redriven > 0; i++ {
		c.kicked(&jobs[i])
	}
	return uint64(r.Redriven), err
}

// kicked notes what the store forgets of a job that is kicked.
func (c *conn) kicked(m *engine.Info) {
	delay := m.Due.Sub(m.Created)
	c.s.notes.change(m.ID, func(n *note) {
		n.kicks++
		n.reserves += m.Attempt
		n.keepDelay(delay)
	})
}

// kickJob carries out kick-job.
func (c *conn) kickJob(a args) {
	queue, err := c.withJob(a.id, access.Operate, func(m *engine.Info) error {
		if m.State != engine.Dead && m.State != engine.Scheduled {
			return engine.ErrNotFound
		}
		n, err := c.makeReady([]engine.Info{*m})
		if n == 0 && err == nil {
			err = engine.ErrNotFound
		}
		return err
	})
	if queue != "" {
		c.audit("redrive", queue, err, "message", a.id.String())
	}
	c.answer("KICKED", err)
}

// pause carries out pause-tube.
func (c *conn) pause(a args) {
	if !tubeName(a.tube) {
		c.say("BAD_FORMAT")
		return
	}
	what, queue := "pause", string(a.tube)
	if a.delay == 0 {
		what = "resume"
	}
	if !c.may(access.Operate, queue) {
		c.audit(what, queue, errForbidden)
		c.fail(errForbidden)
		return
	}
	t, err := c.s.tubes.existing(c.ctx, queue)
	if err != nil {
		c.fail(err)
		return
	}
	if a.delay == 0 {
		err = c.s.c.Resume(c.ctx, queue)
	} else {
		err = c.s.c.Pause(c.ctx, queue, a.delay)
	}
	c.audit(what, queue, err)
	if err != nil {
		c.fail(err)
		return
	}
	t.pauses.Add(1)
	c.s.tubes.paused(t, a.delay, time.Now())
	c.say("PAUSED")
}

// pauseForGood is how long a pause without an end is said to be, in seconds.
const pauseForGood = math.MaxUint32
