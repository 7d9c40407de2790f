package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tarryhq/tarry/internal/schema"
	"github.com/tarryhq/tarry/internal/wire"
)

// openapi answers with the OpenAPI document of the API.
func (s *Server) openapi(x *exchange, r *http.Request) error {
	return s.answer(x, func(b []byte) []byte { return append(b, s.document()...) })
}

var callOpenAPI = &call{
	id: "getOpenAPI", group: groupServer, does: "Tell this document",
	answers: ok("The OpenAPI document of the API.", schema.Type("object")),
}

// describe makes the OpenAPI document of a table of routes. Each path is described by its
// call, with the shapes that also read its requests and write its answers.
func describe(table []route, version string) []byte {
	at := make(map[string]int)
	var paths schema.Object
	for i := range table {
		e := &table[i]
		if e.call == nil {
			continue
		}
		path := e.name
		n, known := at[path]
		if !known {
			n, at[path] = len(paths), len(paths)
			paths = paths.With(path, schema.Object(nil))
		}
		paths[n].Value = paths[n].Value.(schema.Object).With(strings.ToLower(e.method), e.call.operation(e.pattern, e.scope))
	}
	var schemas schema.Object
	for _, shape := range wire.Shapes {
		schemas = schemas.With(shape.Name, shape.Schema())
	}
	var tags []schema.Object
	for _, g := range groups {
		tags = append(tags, schema.Object{{Name: "name", Value: g[0]}, {Name: "description", Value: g[1]}})
	}
	document := schema.Object{
		{Name: "openapi", Value: "3.1.0"},
		{Name: "info", Value: schema.Object{
			{Name: "title", Value: "tarry"},
			{Name: "version", Value: version},
			{Name: "summary", Value: "Messages that are delivered later."},
			{Name: "description", Value: "Times are RFC 3339. Durations are strings such as 1500ms, 30m, 48h or 7d; answers write no days. " +
				"Fields of a request that are unknown are refused; answers may grow fields. A queue, key or schedule in a path is percent-encoded, a slash as %2F."},
			{Name: "license", Value: schema.Object{{Name: "name", Value: "Apache-2.0"}, {Name: "identifier", Value: "Apache-2.0"}}},
		}},
		{Name: "servers", Value: []schema.Object{{{Name: "url", Value: "/"}}}},
		{Name: "tags", Value: tags},
		{Name: "paths", Value: paths},
		{Name: "components", Value: schema.Object{
			{Name: "schemas", Value: schemas},
			{Name: "parameters", Value: wire.Variables().With("exact", schema.Object{
				{Name: "name", Value: wire.ExactHeader}, {Name: "in", Value: "header"},
				{Name: "description", Value: "true: bodies always as body_base64, byte for byte, and repeated headers as an array of pairs"},
				{Name: "schema", Value: schema.Type("string")},
			})},
			{Name: "securitySchemes", Value: schema.Object{{Name: "token", Value: schema.Object{
				{Name: "type", Value: "http"}, {Name: "scheme", Value: "bearer"},
				{Name: "description", Value: "A token made by tarry token create, where the server asks for tokens."},
			}}}},
			{Name: "headers", Value: schema.Object{{Name: "RetryAfter", Value: schema.Object{
				{Name: "description", Value: "in how many seconds trying again may help"}, {Name: "schema", Value: schema.Type("integer").With("minimum", 1)},
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
