package beanstalk

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

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
