package server

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// openapi answers with the OpenAPI document of the API.
func (s *Server) openapi(x *exchange, r *http.Request) error {
	return s.answer(x, func(b []byte) []byte { return append(b, s.document()...) })
}

var callOpenAPI = &call{
	id: "getOpenAPI", group: groupServer, does: "Tell this document",
	answers: ok("The OpenAPI document of the API.", wire.TypeSchema("object")),
}

// describe makes the OpenAPI document of a table of routes. Each path is described by its
// call, with the shapes that also read its requests and write its answers.
func describe(table []route, version string) []byte {
	at := make(map[string]int)
	var paths wire.Schema
	for i := range table {
		e := &table[i]
		if e.call == nil {
			continue
		}
		path := e.name
		n, known := at[path]
		if !known {
			n, at[path] = len(paths), len(paths)
			paths = paths.With(path, wire.Schema(nil))
		}
		paths[n].Value = paths[n].Value.(wire.Schema).With(strings.ToLower(e.method), e.call.operation(e.pattern, e.scope))
	}
	var schemas wire.Schema
	for _, shape := range wire.Shapes {
		schemas = schemas.With(shape.Name, shape.Schema())
	}
	var tags []wire.Schema
	for _, g := range groups {
		tags = append(tags, wire.Schema{{Name: "name", Value: g[0]}, {Name: "description", Value: g[1]}})
	}
	document := wire.Schema{
		{Name: "openapi", Value: "3.1.0"},
		{Name: "info", Value: wire.Schema{
			{Name: "title", Value: "tarry"},
			{Name: "version", Value: version},
			{Name: "summary", Value: "Messages that are delivered later."},
			{Name: "description", Value: "Times are RFC 3339. Durations are strings such as 1500ms, 30m, 48h or 7d; answers write no days. " +
				"Fields of a request that are unknown are refused; answers may grow fields. A queue, key or schedule in a path is percent-encoded, a slash as %2F."},
			{Name: "license", Value: wire.Schema{{Name: "name", Value: "Apache-2.0"}, {Name: "identifier", Value: "Apache-2.0"}}},
		}},
		{Name: "servers", Value: []wire.Schema{{{Name: "url", Value: "/"}}}},
		{Name: "tags", Value: tags},
		{Name: "paths", Value: paths},
		{Name: "components", Value: wire.Schema{
			{Name: "schemas", Value: schemas},
			{Name: "parameters", Value: wire.Variables().With("exact", wire.Schema{
				{Name: "name", Value: wire.ExactHeader}, {Name: "in", Value: "header"},
				{Name: "description", Value: "true: bodies always as body_base64, byte for byte, and repeated headers as an array of pairs"},
				{Name: "schema", Value: wire.TypeSchema("string")},
			})},
			{Name: "securitySchemes", Value: wire.Schema{{Name: "token", Value: wire.Schema{
				{Name: "type", Value: "http"}, {Name: "scheme", Value: "bearer"},
				{Name: "description", Value: "A token made by tarry token create, where the server asks for tokens."},
			}}}},
			{Name: "headers", Value: wire.Schema{{Name: "RetryAfter", Value: wire.Schema{
				{Name: "description", Value: "in how many seconds trying again may help"}, {Name: "schema", Value: wire.TypeSchema("integer").With("minimum", 1)},
			}}}},
		}},
	}
	b, err := json.MarshalIndent(document, "", "\t")
	if err != nil {
		panic(err) // a bug: the document is only words and numbers
	}
	return b
}

// template returns the path of a route as the document shows it.
func (e *route) template() string {
	var b strings.Builder
	for i, segment := range e.pattern {
		b.WriteByte('/')
		if segment == "*" {
			segment = "{" + wire.Variable(e.pattern, i) + "}"
		}
		b.WriteString(segment)
	}
	return b.String()
}

// call describes a route for the OpenAPI document, beyond its method and path. It holds the
// shapes of its request and answers.
type call struct {
	id      string // the operation's id, from which generated clients take its name; ByKey is appended for a key
	group   string
	does    string // a short summary
	more    string // a longer description; "": none
	query   *wire.Shape
	request *wire.Shape // nil: the request has no body
	exact   bool        // wire.ExactHeader says how messages are answered
	answers []success
	streams bool            // the first answer is an endless stream of events
	lines   bool            // the first answer can also come as lines, on request
	fails   []error         // errors besides those that any call may return
	example json.RawMessage // of a request
}

// success is a successful answer of a call.
type success struct {
	status int
	doc    string
	shape  wire.Schema // nil: no body
}

// ok is the answer of most calls.
func ok(doc string, shape wire.Schema) []success { return []success{{http.StatusOK, doc, shape}} }

// The groups of calls.
const (
	groupPush     = "push"
	groupMessage  = "messages"
	groupWork     = "work"
	groupQueue    = "queues"
	groupSchedule = "schedules"
	groupServer   = "server"
)

var groups = [...][2]string{
	{groupPush, "Push messages."},
	{groupMessage, "Find and change messages."},
	{groupWork, "Lease messages, and settle them."},
	{groupQueue, "Look at queues, and operate them."},
	{groupSchedule, "Push messages again and again."},
	{groupServer, "The server itself."},
}

// operation returns the call as the document shows it, for a route with this path and scope.
func (c *call) operation(path []string, scope access.Scope) wire.Schema {
	id := c.id
	if len(path) > 3 && path[3] == "keys" {
		id += "ByKey"
	}
	o := wire.Schema{{Name: "operationId", Value: id}, {Name: "tags", Value: []string{c.group}}, {Name: "summary", Value: c.does}}
	if c.more != "" {
		o = o.With("description", c.more)
	}
	if ps := c.parameters(path); len(ps) > 0 {
		o = o.With("parameters", ps)
	}
	if c.request != nil {
		content := wire.Schema{{Name: "schema", Value: c.request.Ref()}}
		if c.example != nil {
			content = content.With("example", c.example)
		}
		o = o.With("requestBody", wire.Schema{{Name: "required", Value: !c.request.Bare}, {Name: "content", Value: wire.Schema{{Name: mediaType, Value: content}}}})
	}
	return o.With("responses", c.responses()).With("security", security(scope))
}

// security lists the tokens that may make a call: one with any of the scopes, or none where
// the server asks for none.
func security(scope access.Scope) []wire.Schema {
	none := wire.Schema{}
	switch scope {
	case access.Anyone:
		return []wire.Schema{none}
	case access.Known:
		return []wire.Schema{{{Name: "token", Value: []string{}}}, none}
	}
	var all []wire.Schema
	for _, name := range scope.Names() {
		all = append(all, wire.Schema{{Name: "token", Value: []string{name}}})
	}
	return append(all, none)
}

// parameters returns those of the path and of the query.
func (c *call) parameters(path []string) (all []wire.Schema) {
	for i, segment := range path {
		if segment == "*" {
			all = append(all, wire.Schema{{Name: "$ref", Value: "#/components/parameters/" + wire.Variable(path, i)}})
		}
	}
	if c.query != nil {
		all = append(all, c.query.Parameters()...)
	}
	if c.exact {
		all = append(all, wire.Schema{{Name: "$ref", Value: "#/components/parameters/exact"}})
	}
	return all
}

// responses returns the answers of a call by status: the successful ones, and each error with
// its codes. Any other error has the same shape.
func (c *call) responses() wire.Schema {
	var o wire.Schema
	for i, a := range c.answers {
		r := wire.Schema{{Name: "description", Value: a.doc}}
		if i == 0 && c.streams {
			r = r.With("content", wire.Schema{{Name: eventType, Value: wire.Schema{{Name: "schema", Value: wire.TypeSchema("string")}}}})
		}
		if a.shape != nil {
			types := content(a.shape)
			if i == 0 && c.lines {
				types = types.With(linesType, wire.Schema{{Name: "schema", Value: a.shape}})
			}
			r = r.With("content", types)
		}
		o = o.With(strconv.Itoa(a.status), r)
	}
	fails := append([]error{engine.ErrInvalid, engine.ErrUnauthorized, engine.ErrForbidden, engine.ErrUnavailable, errInternal}, c.fails...)
	if c.request != nil {
		fails = append(fails, engine.ErrTooLarge)
	}
	meaning := make(map[int][]string)
	for _, err := range fails {
		code, status, doc := wire.Meaning(err)
		meaning[status] = append(meaning[status], code+": "+doc)
	}
	if c.request != nil {
		meaning[http.StatusRequestTimeout] = []string{"invalid: the request's body did not come in time"}
		meaning[http.StatusUnsupportedMediaType] = []string{"invalid: the Content-Type is not " + mediaType}
	}
	for _, status := range slices.Sorted(maps.Keys(meaning)) {
		r := failure(strings.Join(meaning[status], "\n"))
		if mayRetry(status) {
			r = r.With("headers", wire.Schema{{Name: "Retry-After", Value: wire.Schema{{Name: "$ref", Value: "#/components/headers/RetryAfter"}}}})
		}
		o = o.With(strconv.Itoa(status), r)
	}
	return o.With("default", failure("Any other error."))
}

// errInternal stands for all errors without a code of their own.
var errInternal = errors.New("internal")

func failure(doc string) wire.Schema {
	return wire.Schema{{Name: "description", Value: doc}, {Name: "content", Value: content(wire.Failed.Ref())}}
}

func content(shape wire.Schema) wire.Schema {
	return wire.Schema{{Name: mediaType, Value: wire.Schema{{Name: "schema", Value: shape}}}}
}

const (
	mediaType = "application/json"
	eventType = "text/event-stream"
	linesType = "application/x-ndjson"
)
