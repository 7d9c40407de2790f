package beanstalk

import (
	"errors"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// kickPage is how many jobs are kicked in one call of the store.
const kickPage = 500

// kick carries out kick: of buried jobs, or of delayed ones if none is buried.
func (c *conn) kick(a args) (string, error) {
	queue := c.use.name
	if err := c.mayOperate("redrive", queue); err != nil {
		return "", err
	}
	kicked, err := c.kickState(engine.Dead, uint64(a.count))
	if kicked == 0 && err == nil {
		kicked, err = c.kickState(engine.Scheduled, uint64(a.count))
	}
	c.audit("redrive", queue, err, "count", kicked)
	return "KICKED " + strconv.FormatUint(kicked, 10), err
}

// kickState makes up to n jobs ready that are in a state, the first ones first.
func (c *conn) kickState(state engine.State, n uint64) (kicked uint64, err error) {
	q := tarry.ListQuery{Queue: c.use.name, State: state}
	for more := true; more && kicked < n; more = q.After != "" {
		q.Limit = int(min(n-kicked, kickPage))
		p, err := c.s.c.ListPage(c.ctx, q)
		if err != nil {
			return kicked, err
		}
		some, err := c.makeReady(p.Messages)
		if kicked += some; err != nil {
			return kicked, err
		}
		q.After = p.Next
	}
	return kicked, nil
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
	c.s.notes.change(m.ID, func(n *note) {
		n.kicks++
		n.reserves += m.Attempt
		n.keepDelay(m)
	})
}

// kickJob carries out kick-job.
func (c *conn) kickJob(a args) (string, error) {
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
	return "KICKED", err
}

// pause carries out pause-tube.
func (c *conn) pause(a args) (string, error) {
	if !tubeName(a.tube) {
		return "BAD_FORMAT", nil
	}
	what, queue := "pause", string(a.tube)
	if a.delay == 0 {
		what = "resume"
	}
	if err := c.mayOperate(what, queue); err != nil {
		return "", err
	}
	t, err := c.s.tubes.existing(c.ctx, queue)
	if err != nil {
		return "", err
	}
	if a.delay == 0 {
		err = c.s.c.Resume(c.ctx, queue)
	} else {
		err = c.s.c.Pause(c.ctx, queue, a.delay)
	}
	c.audit(what, queue, err)
	if err != nil {
		return "", err
	}
	t.pauses.Add(1)
	c.s.tubes.paused(t, a.delay, time.Now())
	return "PAUSED", nil
}

// peek carries out peek.
func (c *conn) peek(a args) (string, error) {
	m, err := c.job(a.id, access.Read)
	if err != nil {
		return "", err
	}
	return c.found(&m)
}

// found answers with a job.
func (c *conn) found(m *engine.Info) (string, error) {
	c.sayJob("FOUND ", m.ID, m.Body)
	return "", nil
}

// peekReady carries out peek-ready: the job that is reserved first, pause or not.
func (c *conn) peekReady(args) (string, error) {
	queue := c.use.name
	if err := c.allows(access.Read, queue); err != nil {
		return "", err
	}
	for range 3 { // another may take the job meanwhile
		first, err := c.s.c.Peek(c.ctx, []string{queue})
		if err != nil {
			return "", err
		}
		if first[0].ID == 0 {
			break
		}
		m, err := c.s.c.Get(c.ctx, engine.Ref{Queue: queue, ID: first[0].ID})
		switch {
		case err == nil && m.State == engine.Ready:
			return c.found(&m)
		case err != nil && !errors.Is(err, engine.ErrNotFound):
			return "", err
		}
	}
	return "NOT_FOUND", nil
}

// peekFirst carries out peek-delayed and peek-buried.
func (c *conn) peekFirst(state engine.State) (string, error) {
	if err := c.allows(access.Read, c.use.name); err != nil {
		return "", err
	}
	p, err := c.s.c.ListPage(c.ctx, tarry.ListQuery{Queue: c.use.name, State: state, Limit: 1, Body: true})
	switch {
	case err != nil:
		return "", err
	case len(p.Messages) == 0:
		return "NOT_FOUND", nil
	}
	return c.found(&p.Messages[0])
}
