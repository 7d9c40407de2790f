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
// three are live, and only live messages hold a key, which is unique among the live
// messages of a queue. Each transition is one atomic step. Before an answer is given,
// everything that it is based on is as durable as the engine makes a push. A lease ends at
// its deadline by the engine's clock, noticed or not: from then on the message counts as
// ready again, or dead when its attempts are used up. Even so its old token still settles
// it, until a cancel, replace, reschedule, claim or new lease.
//
// An engine's clock may step. What is ready, and which leases are over, follows the current
// clock; what was leased, settled or dropped is not undone.
//
// Times are instants in whole milliseconds, UTC. The zero time means "none". Slices passed
// to an engine belong to the caller: an engine copies what it keeps. Slices that it returns
// belong to the caller as well. All methods are safe for concurrent use. A call returns
// soon after its context ends; its outcome is then unknown, and repeating it with the same
// key is safe.
//
// The conformance suite in enginetest is the contract in executable form.
// docs/engines/writing.md says how to write an engine, and what to reuse.
package engine
