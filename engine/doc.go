// Package engine is the contract between tarry and the stores of its messages. It defines
// the types, the meaning of each call, the errors, and the registry of engines by URL
// scheme. It has no storage of its own.
//
// Programs use the root package; this package is for writing and choosing engines. An
// engine answers at once and never waits for time to pass. Waiting, waking, validation,
// defaults, retries of calls, lease renewal and guards are implemented once, in the root
// package.
//
// # Rules every engine keeps
//
// A message is scheduled (its due time is in the future), ready, leased or dead. The first
// three are live, and only live messages hold a key, which is unique among the live messages
// of a queue. Each transition is one atomic step. An engine answers only when everything that
// the answer is based on is as durable as a push. A lease ends at its deadline by the
// engine's clock, even if nothing notices. From then on the message counts as ready again, or
// as dead if its attempts are used up. Its old token still settles it, until a cancel,
// replace, reschedule, claim or new lease.
//
// An engine's clock may step. The current clock decides which messages are ready and which
// leases are over. Past leases, settlements and drops are not undone.
//
// Times are instants in whole milliseconds, UTC. The zero time means "none". Slices passed
// to an engine belong to the caller: an engine copies what it keeps. Slices that it returns
// belong to the caller as well. All methods are safe for concurrent use. A call returns
// soon after its context ends; its outcome is then unknown, and repeating it with the same
// key is safe.
//
// The conformance suite in enginetest is the contract in executable form.
// docs/engines/writing.md says how to write an engine, and which parts to reuse.
package engine
