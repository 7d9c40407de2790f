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

// limitRest bounds how long a client may rest that has not authenticated, TLS included.
func (c *conn) limitRest() {
	switch strange := c.s.cfg.Guard != nil && c.token == nil && !c.known(); {
	case strange:
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
	a := c.s.cfg.Audit
	if a == nil {
		return
	}
	result := "ok"
	switch {
	case errors.Is(err, errForbidden):
		result = "forbidden"
	case err != nil:
		result = engine.Code(err)
	}
	line := []any{"what", what}
	if c.token != nil {
		line = append(line, "who", c.token.Name, "token_id", c.token.ID)
	}
	line = append(append(append(line, "queue", queue), more...), "from", c.host, "result", result)
	if err != nil {
		line = append(line, "error", err.Error())
	}
	if result == "forbidden" {
		a.Refused(c.token, c.host, line...)
		return
	}
	a.Note(line...)
}
