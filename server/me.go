package server

import (
	"net/http"

	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callMe = &call{
	id: "getCaller", group: groupServer, does: "Tell the caller's token and its rights",
	more:    "Where the server needs no token, everything is allowed.",
	answers: ok("The token and its rights.", wire.CallerTold.Ref()),
}

// me answers with the rights of the request's token.
func (s *Server) me(x *exchange, r *http.Request) error {
	c := wire.Caller{Scopes: access.Admin.Names(), Queues: []string{"*", "tarry.*"}}
	if t := x.token; t != nil {
		c = wire.Caller{Name: t.Name, Scopes: t.Scopes.Names(), Queues: t.Queues, Expires: wire.Time{Time: t.Expires}}
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &c) })
}
