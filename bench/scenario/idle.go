package scenario

import (
	"runtime"
	"testing"
	"time"
)

// Idle reports how much of a processor a worker with nothing to do and its server take
// together, in percent, once what they began before has ended.
func Idle(b *testing.B, s System) {
	stop := s.Work(b, []string{Queue}, func(int) {})
	defer stop()
	runtime.GC() // of what was done before
	rest()
	began, before := time.Now(), CPU()
	time.Sleep(*Span)
	used, took := CPU()-before, time.Since(began)
	Report(b, 100*used.Seconds()/took.Seconds(), "idle-%")
}

// rest waits for what each system does on starting, and an election of River's, and then until
// little is done any more: merges go on for a while. It waits for two minutes at most.
func rest() {
	const (
		settle = 5 * time.Second
		most   = 2 * time.Minute
		glance = 3 * time.Second
		little = glance / 100
	)
	time.Sleep(settle)
	for end := time.Now().Add(most); time.Now().Before(end); {
		before := CPU()
		time.Sleep(glance)
		if CPU()-before < little {
			return
		}
	}
}
