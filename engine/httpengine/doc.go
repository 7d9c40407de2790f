// Package httpengine is a remote tarry server as an engine: import it, and
// "http://host:8277" or "https://host" is a URL that tarry.Open understands. The
// same code then runs on the engine behind that server, whatever it is.
//
//	import _ "github.com/tarryhq/tarry/engine/httpengine"
//
//	c, err := tarry.Open(ctx, "http://127.0.0.1:8277", nil)
//
// What the engine can do and its limits are asked for once, when it is opened. Waits
// rest on the server, in long polls. Bodies travel byte for byte, headers in their
// order.
//
// Calls are not retried. A call that gets no answer fails with ErrUnavailable, and
// its outcome is unknown.
//
// When the context of a lease ends, the engine ends the wait on the server and returns what
// was leased by then. Without an answer within a second it cuts the request off; what the
// server has leased lapses.
package httpengine
