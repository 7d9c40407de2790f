package scenario

import (
	"context"
	"flag"
	"testing"
	"time"
)

var (
	// Pending is the most messages that benchmarks of depth let pend.
	Pending = flag.Int("pending", 1_000_000, "most messages that pend in benchmarks of depth and of idling")
	// Span is how long Lateness lasts, and whatever watches an idle worker.
	Span = flag.Duration("span", 20*time.Second, "how long Lateness and Idle last")

	// BurstSize is how many messages Burst has due in one instant.
	BurstSize = flag.Int("burst", 100_000, "messages that Burst has due in one instant")
	// Keys says what keys look like.
	Keys = flag.String("keys", "order", "what keys look like: order, which is order- and a number, or random")
	// BodySize is how many bytes bodies have.
	BodySize = flag.Int("body", 200, "bytes of a body, at most 200")

	rate   = flag.Int("rate", 1000, "messages due each second in Lateness")
	beside = flag.Int("beside", 0, "messages a second that Lateness pushes meanwhile, due a day later or more")
)

const (
	// Clients is how many call at the same time, each for itself.
	Clients = 64
	// Queue is the one that is measured.
	Queue = "bench"

	longest = 10 * time.Minute // bounds each step of a scenario
)

// System is one of those measured. Messages are numbers; their keys and bodies follow
// from them.
type System interface {
	// Push schedules one message in a call of its own.
	Push(ctx context.Context, queue string, i int, due time.Time) error
	// PushMany schedules messages from to to-1 in as few calls as there can be.
	PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error
	Cancel(ctx context.Context, queue string, i int) error
	// Work has messages handled. Each handler does no more than to call started.
	Work(b *testing.B, queues []string, started func(i int)) (stop func())
	// Empty says whether nothing of a queue is left to be handled or acked.
	Empty(ctx context.Context, queue string) (bool, error)
	Close() error
}

// Open opens a system that is empty but for what has warmed it up, until b ends.
type Open func(b *testing.B) System

// Warm opens a system for b.
func Warm(b *testing.B, s System, err error) System {
	b.Helper()
	Must(b, err)
	b.Cleanup(func() { Must(b, s.Close()) })
	Fill(b, s, "warm", 10*Clients)
	return s
}

// Once skips a benchmark that would be run again and again for one figure.
func Once(b *testing.B) {
	if flag.Lookup("test.benchtime").Value.String() != "1x" {
		b.Skip("its size is given by flags: run it with -benchtime=1x")
	}
}

// Report replaces the time an iteration takes by what was measured.
func Report(b *testing.B, value float64, unit string) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(value, unit)
}

// Must ends a benchmark that has failed.
func Must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
