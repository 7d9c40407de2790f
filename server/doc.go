// Package server is tarry over HTTP: an http.Handler that answers version 1 of the
// API described in docs/http.md for any tarry.Client, whatever engine stands
// behind it.
//
// JSON comes in strictly: a field that is unknown, given twice, of the wrong type
// or out of bounds is refused by name. Every error, also for paths and methods that
// do not exist, has the shape {"error":{"code","message","hint"}}.
//
// Long polls rest in the client's dispatcher, so that a thousand of them on one
// queue cost the engine one call. A message leased to somebody who has gone before
// the answer could be written is released.
//
// No client can hold more than its share: memory is taken as bytes arrive, out of one
// budget for all requests and answers; connections are counted; and every stride of a
// request or an answer has to pass within a time. No web page can call the server but
// its own, since it answers only for names that it was told: see Config.
package server
