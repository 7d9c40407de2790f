package scenario

import (
	"runtime"
	"testing"
	"time"
)

// Idle reports how much of a processor a worker with nothing to do and its server take
// together, in percent.
func Idle(b *testing.B, s System) {
	const settle = 5 * time.Second // for what each does on starting, and an election of River's
	stop := s.Work(b, []string{Queue}, func(int) {})
	defer stop()
	runtime.GC() // of what was done before
	time.Sleep(settle)
	began, before := time.Now(), CPU()
	time.Sleep(*Span)
	used, took := CPU()-before, time.Since(began)
	Report(b, 100*used.Seconds()/took.Seconds(), "idle-%")
}
