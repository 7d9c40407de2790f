package beanstalk

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// delete carries out delete: of a job that the connection holds, or of one that nobody holds.
func (c *conn) delete(id engine.ID) {
	j := c.held.take(id)
	if j == nil {
		c.cancel(id)
		return
	}
	if !c.may(access.Work, j.tube.name) {
		c.held.add(j)
		c.fail(errForbidden)
		return
	}
	_, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Ack})
	switch {
	case err == nil:
		c.deleted(id, j.tube)
	case errors.Is(err, engine.ErrLeaseLost): // perhaps before its time, if a clock was set
		c.cancel(id)
	default:
		c.held.add(j)
		c.fail(err)
	}
}

// cancel deletes a job that nobody holds.
func (c *conn) cancel(id engine.ID) {
	queue, err := c.queueOf(id)
	if err == nil && !c.may(access.Push|access.Operate, queue) {
		err = errForbidden
	}
	if err == nil {
		err = c.s.c.Cancel(c.ctx, engine.Ref{Queue: queue, ID: id, By: c.name()})
	}
	if queue != "" && c.operator() {
		c.audit("cancel", queue, err, "message", id.String())
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.deleted(id, c.s.tubes.known(queue))
}

// deleted answers, and forgets a job.
func (c *conn) deleted(id engine.ID, t *tube) {
	c.s.notes.drop(id)
	t.deletes.Add(1)
	c.s.tubes.emptied(c.ctx, t)
	c.say("DELETED")
}

// holding takes a job that the connection holds and may settle. If there is none, it answers.
func (c *conn) holding(id engine.ID) *job {
	j := c.held.take(id)
	if j == nil || j.over {
		if j != nil {
			c.held.add(j)
		}
		c.say("NOT_FOUND")
		return nil
	}
	if !c.may(access.Work, j.tube.name) {
		c.held.add(j)
		c.fail(errForbidden)
		return nil
	}
	return j
}

// lost answers when a settlement has failed. Unless the lease is lost, the job is still held.
func (c *conn) lost(j *job, err error) {
	if !errors.Is(err, engine.ErrLeaseLost) {
		c.held.add(j)
	}
	c.fail(err)
}

// release carries out release.
func (c *conn) release(v *verb, rest []byte) {
	id, rest, ok := idOf(rest)
	pri, rest, isPri := number(rest, maxU32)
	delay, rest, isDelay := duration(rest, maxU32)
	if !ok || !isPri || !isDelay || len(rest) > 0 {
		c.say("BAD_FORMAT")
		return
	}
	c.count(v)
	j := c.holding(id)
	if j == nil {
		return
	}
	when := engine.When{At: j.due} // keeps its place in line
	if delay > 0 {
		when = engine.When{In: delay}
	}
	state, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Retry, When: &when, Priority: new(uint32(pri))})
	if err != nil {
		c.lost(j, err)
		return
	}
	c.s.notes.change(id, func(n *note) {
		n.releases++
		n.setDelay(delay)
	})
	if state == engine.Dead { // its attempts are used up
		c.say("BURIED")
		return
	}
	c.say("RELEASED")
}

// bury carries out bury.
func (c *conn) bury(v *verb, rest []byte) {
	id, rest, ok := idOf(rest)
	pri, rest, isPri := number(rest, maxU32)
	if !ok || !isPri || len(rest) > 0 {
		c.say("BAD_FORMAT")
		return
	}
	c.count(v)
	j := c.holding(id)
	if j == nil {
		return
	}
	if _, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Bury, Priority: new(uint32(pri))}); err != nil {
		c.lost(j, err)
		return
	}
	c.s.notes.change(id, func(n *note) { n.buries++ })
	c.say("BURIED")
}

// touch carries out touch.
func (c *conn) touch(id engine.ID) {
	j := c.holding(id)
	if j == nil {
		return
	}
	asked := time.Now()
	if _, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Extend}); err != nil {
		c.lost(j, err)
		return
	}
	j.until = asked.Add(j.ttr)
	c.held.add(j)
	c.say("TOUCHED")
}
