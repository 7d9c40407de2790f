package beanstalk

import (
	"errors"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

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
