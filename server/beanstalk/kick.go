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
func (c *conn) kick(rest []byte) {
	n, ok := count(rest)
	if !ok {
		c.say("BAD_FORMAT")
		return
	}
	c.count(opKick)
	queue := c.use.name
	if !c.may(access.Operate, queue) {
		c.audit("redrive", queue, errForbidden)
		c.say("FORBIDDEN")
		return
	}
	kicked, err := c.kickState(engine.Dead, uint64(n))
	if kicked == 0 && err == nil {
		kicked, err = c.kickState(engine.Scheduled, uint64(n))
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
	for kicked < n {
		limit := int(min(n-kicked, kickPage))
		p, err := c.s.c.ListPage(c.ctx, tarry.ListQuery{Queue: c.use.name, State: state, Limit: limit})
		if err != nil || len(p.Messages) == 0 {
			return kicked, err
		}
		done := uint64(0)
		if state == engine.Dead {
			done, err = c.redrive(p.Messages)
		} else {
			done, err = c.hasten(p.Messages)
		}
		kicked += done
		if err != nil || done == 0 {
			return kicked, err
		}
	}
	return kicked, nil
}

// redrive makes buried jobs ready.
func (c *conn) redrive(jobs []engine.Info) (uint64, error) {
	ids := make([]engine.ID, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	r, err := c.s.c.Redrive(c.ctx, jobs[0].Queue, ids, 0)
	if err != nil {
		return 0, err
	}
	for i := range jobs {
		c.kicked(&jobs[i])
	}
	return uint64(r.Redriven), nil
}

// hasten makes delayed jobs ready.
func (c *conn) hasten(jobs []engine.Info) (n uint64, err error) {
	for i := range jobs {
		m := &jobs[i]
		_, err := c.s.c.Reschedule(c.ctx, engine.Ref{Queue: m.Queue, ID: m.ID, IfState: engine.Scheduled}, tarry.In(0))
		switch {
		case err == nil:
			c.kicked(m)
			n++
		case !errors.Is(err, engine.ErrStale) && !errors.Is(err, engine.ErrNotFound):
			return n, err
		}
	}
	return n, nil
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
func (c *conn) kickJob(id engine.ID) {
	queue := ""
	err := c.withJob(id, access.Operate, func(m *engine.Info) error {
		queue = m.Queue
		n, err := uint64(0), error(nil)
		switch one := []engine.Info{*m}; m.State {
		case engine.Dead:
			n, err = c.redrive(one)
		case engine.Scheduled:
			n, err = c.hasten(one)
		}
		if n == 0 && err == nil {
			err = engine.ErrNotFound
		}
		return err
	})
	if queue != "" {
		c.audit("redrive", queue, err, "message", id.String())
	}
	if err != nil {
		c.failJob(err)
		return
	}
	c.say("KICKED")
}

// pause carries out pause-tube.
func (c *conn) pause(rest []byte) {
	for len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	name := rest[:nameLength(rest)]
	d, rest, ok := duration(rest[len(name):], maxU32)
	if len(name) == 0 || !ok || len(rest) > 0 {
		c.say("BAD_FORMAT")
		return
	}
	c.count(opPauseTube)
	if !tubeName(name) {
		c.say("BAD_FORMAT")
		return
	}
	t, err := c.s.tubes.existing(c.ctx, string(name))
	if err != nil || t == nil {
		c.failJob(orNotFound(err))
		return
	}
	what := "pause"
	if d == 0 {
		what = "resume"
	}
	switch {
	case !c.may(access.Operate, t.name):
		err = errForbidden
	case d == 0:
		err = c.s.c.Resume(c.ctx, t.name)
	default:
		err = c.s.c.Pause(c.ctx, t.name, d)
	}
	c.audit(what, t.name, err)
	if err != nil {
		c.failJob(err)
		return
	}
	t.pauses.Add(1)
	c.s.tubes.paused(t, d, time.Now())
	c.say("PAUSED")
}

// pauseForGood is how long a pause without an end is said to be, in seconds.
const pauseForGood = math.MaxUint32
