// Package wire is the JSON of the HTTP API, version 1: every request and every answer,
// written and read in one place, for the server, the engine that talks to it and the
// command line.
//
// Append functions write what they are named after behind b. A Reader reads: requests
// strictly, so that a field that is unknown, given twice or of the wrong kind is
// refused by its name; answers, which may grow, with what is unknown left out. Paths
// and queries have their functions in path.go and query.go.
//
// A Shape has the names by which an object is read, and what the OpenAPI document tells
// of each: type, bounds and meaning.
//
// Times are RFC 3339 in UTC with three decimals, null for none; durations are strings
// such as "1h30m", read with days too; ids are strings of decimal digits. A body is
// JSON where its content type says so and it is, else base64.
package wire
