package beanstalk

import (
	"errors"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

var errForbidden = errors.New("forbidden")

// known reports whether the connection has a token that is valid.
func (c *conn) known() bool {
	g := c.s.cfg.Guard
	if c.token != nil {
		c.token = g.Current(c.token)
	}
	if c.token == nil && c.s.cfg.As != "" {
		c.token, _ = g.ByName(c.s.cfg.As)
	}
	return c.token != nil
}

// limitIdle bounds how long a client may stay idle before it authenticates, TLS handshake included.
func (c *conn) limitIdle() {
	switch unknown := c.s.cfg.Guard != nil && c.token == nil && !c.known(); {
	case unknown:
		c.limited = true
		c.deadline(time.Now().Add(c.s.cfg.ReadTimeout))
	case c.limited:
		c.limited = false
		c.deadline(time.Time{})
	}
}

// may reports whether the connection has one of the rights on a queue.
func (c *conn) may(scope access.Scope, queue string) bool {
	return c.s.cfg.Guard == nil || c.token.May(scope, queue)
}

// allows returns an error unless the connection has one of the rights on a queue.
func (c *conn) allows(scope access.Scope, queue string) error {
	if !c.may(scope, queue) {
		return errForbidden
	}
	return nil
}

// unauthorized refuses a command, and drops the body of a put.
func (c *conn) unauthorized(v *verb, rest []byte) {
	c.s.counts.refused.Add(1)
	n := int64(0)
	if v == put {
		if a, ok := v.arguments(rest); ok && len(a.rest) == 0 {
			n = a.size + 2
		}
	}
	c.skip(n, "UNAUTHORIZED")
}

// auth carries out auth: it takes the secret of a token.
func (c *conn) auth(a args) {
	g := c.s.cfg.Guard
	if g == nil {
		c.say("UNKNOWN_COMMAND")
		return
	}
	t, err := g.BySecret(strings.TrimSpace(string(a.rest)))
	if err != nil {
		c.s.counts.refused.Add(1)
		g.Refused(c.ctx, c.nc.RemoteAddr().String(), err)
		c.say("UNAUTHORIZED")
		return
	}
	c.token = t
	c.say("AUTHORIZED")
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
