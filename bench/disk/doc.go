// Package disk measures the disk engine beside a bare log, which is the least code that makes
// records durable: what the disk and the processors allow; and in BenchmarkBehind beside such a log behind a
// client of tarry, which is what an engine that had nothing else to do would reach.
//
// BenchmarkSystem measures one of them, and takes the profiles of go test, here on two cores:
//
//	go test ./disk -run '^$' -bench System/push -benchtime 200000x -cpu 4 -store disk:DIR -cpuprofile cpu.out
//
// As the command tarry does, it runs with twice as many processors as there are cores, and lets a small
// heap grow by 16 MiB between collections (docs/decisions/runtime.md).
//
// The other benchmarks have all measured in turns. Each turn is a process of its
// own, on a store of its own where none is kept, so that its processors' time, its memory
// and what it writes are its own. In each turn one is divided by the other; of the turns
// the table has the median. Who has to live longer than a turn is stopped while another
// has its own, so that what it merges is not for free.
//
// Bytes written are those of the whole device, since what the kernel counts for a process
// are pages or groups of pages that it changed, in some kernels hundreds of times as much as
// is written. So nothing else may write to the device meanwhile.
package disk
