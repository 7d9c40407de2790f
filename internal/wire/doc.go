// Package wire writes and reads the JSON of the HTTP API, version 1: every request and
// every answer, for the server, the engine that talks to it and the command line.
//
// An Append function appends what it is named after to b. A Reader reads requests
// strictly: it refuses, by name, a field that is unknown, given twice or of the wrong
// kind. It ignores unknown fields of answers, since answers may grow. The functions for
// paths and queries are in path.go and query.go.
//
// A Shape has the names of an object's fields, and what the OpenAPI document says of
// each: type, bounds and meaning.
//
// Times are RFC 3339 in UTC with three decimals, null for none. Durations are strings such
// as "1h30m"; a Reader accepts days too. Ids are strings of decimal digits. A body is JSON
// if its content type says so and it is valid JSON, else base64.
package wire
