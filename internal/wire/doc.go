// Package wire writes and reads the JSON of the HTTP API, version 1: every request and
// every answer, for the server, the engine that talks to it and the command line.
//
// An Object is a table of the fields of a JSON object: the name of each, what the OpenAPI
// document says of it, and how it is read and written.
//
// A Reader reads requests strictly: it refuses, by name, a field that is unknown, given twice
// or of the wrong kind. It ignores unknown fields of answers, since answers may grow. A query
// is read and written as the object that it stands for (query.go), a path in path.go.
//
// Times are RFC 3339 in UTC with three decimals, null for none. Durations are strings such
// as "1h30m"; a Reader accepts days too. Ids are strings of decimal digits. A body is JSON
// if its content type says so and it is valid JSON, else base64.
package wire
