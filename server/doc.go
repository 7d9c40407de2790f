// Package server is tarry over HTTP: an http.Handler that answers version 1 of the
// API described in docs/http.md for any tarry.Client, whatever engine stands
// behind it.
//
// JSON comes in strictly: a field that is unknown, given twice, of the wrong type
// or out of bounds is refused by name. Every error, also for paths and methods that
// do not exist, has the shape {"error":{"code","message","hint"}}. Only what net/http cannot
// read as a request at all it answers by itself, in plain text.
//
// Long polls rest in the client's dispatcher, so that a thousand of them on one
// queue cost the engine one call. A message leased to somebody who has gone before
// the answer could be written is released.
//
// Memory is taken as bytes arrive, out of one budget for all requests and answers. Every
// stride of a request or an answer has to pass within a time. Connections are counted, and
// those that wait for their client make room for others, first those of the address that
// has most of these. No web page can call the server but its own, since it answers only for
// names that it was told: see Config.
package server
