// Package enginetest is the contract of an engine in executable form: the
// conformance suite, the reference model and the shared benchmarks.
//
// An engine's own test calls [Run] with a [Harness] and passes, or skips aloud
// what its Capabilities rule out. [Model] is the whole contract in memory, slow
// and plain, built on the table that [TransitionTable] returns; random histories
// are applied to it and to the engine, and every answer is compared. [Bench]
// measures any engine the same way. [Simulate] plays such histories for as long as one
// likes, with what a harness can let go wrong; [RunThrong] has many callers at once.
//
// The suite has one file per behaviour, each with a list of tests named after
// what must hold. Set TARRY_TEST_SEED to replay one random history, and
// TARRY_TEST_THOROUGH=1 to run what a harness leaves out for its time.
package enginetest
