// Package server serves tarry over HTTP. Its http.Handler answers version 1 of the API,
// described in docs/http.md, for any tarry.Client, whatever its engine.
//
// JSON is read strictly: a field that is unknown, given twice, of the wrong type or out of
// bounds is refused by name. Every error has the shape {"error":{"code","message","hint"}},
// also for paths and methods that do not exist. Only input that is no HTTP request is answered
// by net/http itself, in plain text.
//
// Long polls wait in the client's dispatcher: a thousand of them on one queue cost the engine
// one call. If a client hangs up before its answer is written, its leases are released.
//
// Memory is taken as bytes arrive, from one budget for all requests and answers. Each 64 KiB
// of a request or an answer has a time limit. Connections are bounded. When they run out, one
// that waits for its client is closed, first at the address with the most of these. Web pages
// of other origins cannot call the server, since it answers only for the host names of
// Config.Hosts.
package server
