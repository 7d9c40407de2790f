// Package engine is the contract between tarry and the stores that keep its
// messages. It holds types, the meaning of each call, the errors and the
// registry of engines by URL scheme; it holds no storage.
//
// Programs use the root package; this package is for those who write or choose
// an engine. An engine answers at once and never waits for time to pass:
// waiting, waking, validation, defaults, retries of calls, lease renewal and
// guards live above it, once, in the root package.
//
// # Rules every engine keeps
//
// A message is scheduled (its due time lies ahead), ready, leased or dead. The
// first three are live, and only live messages hold a key, which is unique among
// the live messages of a queue. Each transition is one atomic step. Whatever an
// answer rests on is as durable as the engine makes a push before the answer is
// given. A lease ends at its deadline by the engine's clock whether or not
// anything noticed: from then on the message counts as ready again (or dead, when
// its attempts are used up), yet its old token still settles it until a cancel,
// replace, reschedule, claim or new lease has been decided.
//
// An engine's clock may step. What is ready, and which leases are over, follows
// the clock as it stands; what was leased, settled or dropped is not taken back.
//
// Times are instants in whole milliseconds, UTC. The zero time means "none".
// Slices handed to an engine are the caller's: an engine copies what it keeps.
// Slices it returns are the caller's to keep and change. All methods may be
// called from many goroutines. A context that ends makes a call return soon; the
// outcome of what was under way is then unknown, and repeating with the same key
// is safe.
//
// The conformance suite in enginetest is the contract in executable form.
// docs/engines/writing.md says in which order to write an engine, and what to take.
package engine
