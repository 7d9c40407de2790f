// Package timer keeps timers in memory: millions of them, cheap to start,
// cheapest to postpone, and never early.
//
// Three structures implement [Core]. They never read the clock, since the caller
// passes the time. They start no goroutine, and identify an entry by a [Handle].
//
//   - [Wheel], a hierarchical timing wheel: any span, any number. Take this
//     one unless there is a reason not to.
//   - [Ring], the ring queue: slots, a hand that moves one slot each tick, and a
//     cycle count for each task. The simplest to explain, but each tick looks at
//     all tasks of a slot.
//   - [Heap], a binary heap: exact to the nanosecond, with a logarithmic cost.
//     [DelayQueue] adds takers that block.
//
// [Runner] drives a Core in real time: it sleeps until the next due time and
// hands due entries to a pool of goroutines.
//
// No package-level goroutine, timer or channel exists, so everything here
// works inside a testing/synctest bubble, where 48 hours pass at once.
package timer
