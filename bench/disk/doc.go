// Package disk compares the disk engine with a bare log, the least code that makes records
// durable. The bare log shows what the disk and the processors allow. BenchmarkBehind puts
// such a log behind a client of tarry: an engine that had nothing else to do would be that
// fast.
//
// BenchmarkSystem measures one of these, and takes the profiles of go test, here on two cores:
//
//	go test ./disk -run '^$' -bench System/push -benchtime 200000x -cpu 4 -store disk:DIR -cpuprofile cpu.out
//
// Like the command tarry, it runs with twice as many processors as there are cores, and lets a
// small heap grow by 16 MiB between collections (docs/decisions/runtime.md).
//
// The other benchmarks measure all systems in turns. Each turn is its own process, on its own
// store unless one is kept. So its processor time, memory and writes are its own. Each turn
// gives the ratio of two systems, and the table shows the median of the turns. A process that
// must outlive its turn is stopped during other turns, so that it cannot merge for free.
//
// Bytes written are those of the whole device. The kernel counts for a process the pages, or
// groups of pages, that it changed; in some kernels that is hundreds of times as much as it
// writes. So nothing else may write to the device during a run.
package disk
