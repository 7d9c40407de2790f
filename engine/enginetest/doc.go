// Package enginetest is the executable contract of an engine: the conformance suite, the
// reference model and the shared benchmarks.
//
// An engine's own test calls [Run] with a [Harness]. A test passes, or is skipped with a
// message if the engine's Capabilities exclude it. [Model] is the whole contract in memory,
// slow and plain, built on the table that [TransitionTable] returns. Random histories are
// applied to it and to the engine, and every answer is compared. [Bench] measures any engine
// in the same way. [Simulate] plays such histories for any length of time, with the faults
// of a harness; [RunThrong] has many concurrent callers.
//
// The suite has one file per behavior, each with a list of tests named after what must hold.
// Set TARRY_TEST_SEED to replay one random history, and TARRY_TEST_THOROUGH=1 to run the
// tests that a harness leaves out to save time.
package enginetest
