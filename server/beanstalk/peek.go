package beanstalk

import (
	"errors"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// peek carries out peek.
func (c *conn) peek(a args) {
	m, err := c.job(a.id, access.Read)
	if err != nil {
		c.fail(err)
		return
	}
	c.sayJob("FOUND ", m.ID, m.Body)
}

// peekReady carries out peek-ready: the job that is reserved first, pause or not.
func (c *conn) peekReady(args) {
	if !c.may(access.Read, c.use.name) {
		c.fail(errForbidden)
		return
	}
	for range 3 { // another may take the job meanwhile
		first, err := c.s.c.Peek(c.ctx, []string{c.use.name})
		if err == nil && first[0].ID == 0 {
			break
		}
		var m engine.Info
		if err == nil {
			m, err = c.s.c.Get(c.ctx, engine.Ref{Queue: c.use.name, ID: first[0].ID})
		}
		switch {
		case err == nil && m.State == engine.Ready:
			c.sayJob("FOUND ", m.ID, m.Body)
			return
		case err != nil && !errors.Is(err, engine.ErrNotFound):
			c.fail(err)
			return
		}
	}
	c.say("NOT_FOUND")
}

// peekFirst carries out peek-delayed and peek-buried.
func (c *conn) peekFirst(state engine.State) {
	if !c.may(access.Read, c.use.name) {
		c.fail(errForbidden)
		return
	}
	p, err := c.s.c.ListPage(c.ctx, tarry.ListQuery{Queue: c.use.name, State: state, Limit: 1, Body: true})
	switch {
	case err != nil:
		c.fail(err)
	case len(p.Messages) == 0:
		c.say("NOT_FOUND")
	default:
		c.sayJob("FOUND ", p.Messages[0].ID, p.Messages[0].Body)
	}
}
