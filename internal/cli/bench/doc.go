// Package bench measures an engine from outside, through a tarry.Client, the same way for
// every engine. Run prepares the store, runs one scenario (push, push-raw, push-batch, cancel,
// lateness, burst, pending or recover) and tidies up.
//
// Every message has a name: its key, or a header if the engine has no keys. Bodies are
// hexadecimal digits from a seeded generator, different in each message. They compress to
// about half, as real bodies do, while repeated text would compress to nothing. Latencies go
// into a histogram of bounded memory, exact to one per cent; its maximum is exact.
package bench
