package beanstalk

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// delete carries out delete: of a job that the connection holds, or of one that nobody holds.
func (c *conn) delete(a args) {
	id := a.id
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
	c.s.tubes.removeIfEmpty(c.ctx, t)
	c.say("DELETED")
}

// takeHeld takes a job that the connection holds and may settle. If there is none, it answers.
func (c *conn) takeHeld(id engine.ID) *job {
	j := c.held.take(id)
	if j == nil || j.timedOut {
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

// keepUnlessLost answers when a settlement has failed. Unless the lease is lost, the job is still held.
func (c *conn) keepUnlessLost(j *job, err error) {
	if !errors.Is(err, engine.ErrLeaseLost) {
		c.held.add(j)
	}
	c.fail(err)
}

// release carries out release.
func (c *conn) release(a args) {
	j := c.takeHeld(a.id)
	if j == nil {
		return
	}
	when := engine.When{At: j.due} // keeps its place in line
	if a.delay > 0 {
		when = engine.When{In: a.delay}
	}
	state, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Retry, When: &when, Priority: &a.pri})
	if err != nil {
		c.keepUnlessLost(j, err)
		return
	}
	c.s.notes.change(j.id, func(n *note) {
		n.releases++
		n.setDelay(a.delay)
	})
	if state == engine.Dead { // its attempts are used up
		c.say("BURIED")
		return
	}
	c.say("RELEASED")
}

// bury carries out bury.
func (c *conn) bury(a args) {
	j := c.takeHeld(a.id)
	if j == nil {
		return
	}
	if _, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Bury, Priority: &a.pri}); err != nil {
		c.keepUnlessLost(j, err)
		return
	}
	c.s.notes.change(j.id, func(n *note) { n.buries++ })
	c.say("BURIED")
}

// touch carries out touch.
func (c *conn) touch(a args) {
	j := c.takeHeld(a.id)
	if j == nil {
		return
	}
	asked := time.Now()
	if _, err := c.s.settle(c.ctx, engine.Settlement{Token: j.token, Do: engine.Extend}); err != nil {
		c.keepUnlessLost(j, err)
		return
	}
	j.until = asked.Add(j.ttr)
	c.held.add(j)
	c.say("TOUCHED")
}
