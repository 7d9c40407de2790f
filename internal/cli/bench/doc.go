// Package bench measures an engine from outside, through a tarry.Client, the same
// way for every engine. Each scenario (push, push-batch, cancel, lateness, burst,
// pending, recover) is a function of its own; Run prepares the store, runs one and
// tidies up.
//
// Every message has a key. Bodies are hexadecimal digits from a seeded generator,
// different in each message: they compress to about half, as real bodies do, and
// not to nothing, as a repeated text would. Latencies go into a histogram of
// bounded memory whose values are exact to one per cent (the maximum exactly).
package bench
