package scenario

import (
	"runtime"
	"testing"
	"time"
)

// Idle reports the processor time that an idle worker and its server take together, in
// percent, once earlier work has ended.
func Idle(b *testing.B, s System) {
	stop := s.Work(b, []string{Queue}, func(int) {})
	defer stop()
	runtime.GC() // the garbage of earlier work
	rest()
	began, before := time.Now(), CPU()
	time.Sleep(*Span)
	used, took := CPU()-before, time.Since(began)
	Report(b, 100*used.Seconds()/took.Seconds(), "idle-%")
}

// rest waits until systems have started, including an election in River. Then it waits until
// they do little more, since merges go on for a while, but at most two minutes.
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
