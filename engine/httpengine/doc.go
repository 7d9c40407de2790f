// Package httpengine makes a remote tarry server an engine. Import it, and tarry.Open accepts
// "http://host:8277" and "https://host". The same code then runs on whichever engine is
// behind that server.
//
//	import _ "github.com/tarryhq/tarry/engine/httpengine"
//
//	c, err := tarry.Open(ctx, "http://127.0.0.1:8277", nil)
//
// The server is asked once, on opening, for its abilities and limits. Waiting is done on the
// server, in long polls. Bodies travel byte for byte, and headers in their order.
//
// Calls are not retried. A call that gets no answer fails with ErrUnavailable, and
// its outcome is unknown.
//
// When the context of a lease ends, the engine ends the wait on the server and returns the
// messages leased by then. Without an answer within a second it cuts the request off, and
// leases that the server has made lapse.
package httpengine
