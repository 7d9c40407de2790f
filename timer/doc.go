// Package timer keeps timers in memory: millions of them, cheap to start,
// cheapest to wind back, and never early.
//
// Three structures share one shape, [Core]: they take the time instead of
// asking for it, start no goroutine, and name an entry by a [Handle].
//
//   - [Wheel], a hierarchical timing wheel: any span, any number. Take this
//     one unless there is a reason not to.
//   - [Ring], the ring queue: slots, a hand that moves one slot a tick, and a
//     cycle count a task. The simplest to explain, with a fixed cost a tick.
//   - [Heap], a binary heap: exact to the nanosecond, with a logarithmic cost.
//     [DelayQueue] puts blocking takers in front of it.
//
// [Runner] drives a Core in real time: it sleeps until the next due time and
// hands what is due to a pool of goroutines.
//
// No package-level goroutine, timer or channel exists, so everything here
// works inside a testing/synctest bubble, where 48 hours pass at once.
package timer
