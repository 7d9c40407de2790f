package beanstalk

import (
	"errors"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

var errForbidden = errors.New("forbidden")

// known reports whether the connection has a token that is valid, or needs none.
func (c *conn) known() bool {
	g := c.s.cfg.Guard
	if g == nil {
		return true
	}
	if c.token != nil {
		c.token = g.Current(c.token)
	}
	if c.token == nil && c.s.cfg.As != "" {
		c.token, _ = g.ByName(c.s.cfg.As)
	}
	return c.token != nil
}

// allows returns an error unless the connection has one of the rights on a queue.
func (c *conn) allows(scope access.Scope, queue string) error {
	if c.s.cfg.Guard != nil && !c.token.May(scope, queue) {
		return errForbidden
	}
	return nil
}

// mayOperate returns an error, and notes it, unless the connection may operate a queue.
func (c *conn) mayOperate(what, queue string) error {
	err := c.allows(access.Operate, queue)
	if err != nil {
		c.audit(what, queue, err)
	}
	return err
}

// unauthorized refuses a command, and drops the body of a put.
func (c *conn) unauthorized(v *verb, rest []byte) (string, error) {
	c.s.counts.refused.Add(1)
	if v == put {
		if a, ok := v.arguments(rest); ok && len(a.rest) == 0 {
			return c.skip(a.size+2, "UNAUTHORIZED")
		}
	}
	return "UNAUTHORIZED", nil
}

// auth carries out auth: it takes the secret of a token.
func (c *conn) auth(a args) (string, error) {
	g := c.s.cfg.Guard
	if g == nil {
		return "UNKNOWN_COMMAND", nil
	}
	t, err := g.BySecret(strings.TrimSpace(string(a.rest)))
	if err != nil {
		c.s.counts.refused.Add(1)
		g.Refused(c.ctx, c.nc.RemoteAddr().String(), err)
		return "UNAUTHORIZED", nil
	}
	c.token = t
	return "AUTHORIZED", nil
}

// name returns what the store shows as the name of the worker: the token's, else the host.
func (c *conn) name() string {
	if c.token != nil {
		return c.token.Name
	}
	return c.host
}

// operator reports whether only an operator's right allows the connection to delete jobs.
func (c *conn) operator() bool { return c.token != nil && c.token.Scopes&access.Push == 0 }

// audit writes what an operator did or was not allowed to do.
func (c *conn) audit(what, queue string, err error, more ...any) {
	if c.s.cfg.Audit == nil {
		return
	}
	done := access.Change{What: what, Token: c.token, From: c.host}
	if err != nil {
		done.Code, done.Message = engine.Code(err), err.Error()
	}
	if errors.Is(err, errForbidden) {
		done.Code = "forbidden"
	}
	c.s.cfg.Audit.Change(&done, append([]any{"queue", queue}, more...)...)
}
