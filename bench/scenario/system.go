package scenario

import (
	"context"
	"flag"
	"testing"
	"time"
)

var (
	// Pending is the most pending messages in benchmarks of depth.
	Pending = flag.Int("pending", 1_000_000, "most messages that pend in benchmarks of depth and of idling")
	// Span is how long Lateness lasts, and how long an idle worker is watched.
	Span = flag.Duration("span", 20*time.Second, "how long Lateness and Idle last")

	// BurstSize is how many messages are due at the same instant in Burst.
	BurstSize = flag.Int("burst", 100_000, "messages that Burst has due in one instant")
	// Keys selects the kind of keys: order or random.
	Keys = flag.String("keys", "order", "what keys look like: order, which is order- and a number, or random")
	// BodySize is the bytes of a body.
	BodySize = flag.Int("body", 200, "bytes of a body")

	rate   = flag.Int("rate", 1000, "messages due each second in Lateness")
	beside = flag.Int("beside", 0, "messages a second that Lateness pushes meanwhile, due a day later or more")
)

const (
	// Clients is how many clients call concurrently.
	Clients = 64
	// Queue is the queue that is measured.
	Queue = "bench"

	longest = 10 * time.Minute // bounds each step of a scenario
)

// System is a system to measure. Messages are numbers, which determine their keys and bodies.
type System interface {
	// Push schedules one message in a single call.
	Push(ctx context.Context, queue string, i int, due time.Time) error
	// PushMany schedules messages from to to-1 in as few calls as possible.
	PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error
	Cancel(ctx context.Context, queue string, i int) error
	// Work handles messages. Each handler only calls started.
	Work(b *testing.B, queues []string, started func(i int)) (stop func())
	// Empty reports whether a queue has nothing left to handle or ack.
	Empty(ctx context.Context, queue string) (bool, error)
	Close() error
}

// Open opens a system that is empty except for warm-up messages, and closes it when b ends.
type Open func(b *testing.B) System

// Warm warms up a system that was opened for b, or fails b with err.
func Warm(b *testing.B, s System, err error) System {
	b.Helper()
	Must(b, err)
	b.Cleanup(func() { Must(b, s.Close()) })
	Fill(b, s, "warm", 10*Clients)
	return s
}

// Once skips a benchmark whose size comes from flags, unless it runs once.
func Once(b *testing.B) {
	if flag.Lookup("test.benchtime").Value.String() != "1x" {
		b.Skip("its size is given by flags: run it with -benchtime=1x")
	}
}

// Report reports a measurement in place of the time an iteration takes.
func Report(b *testing.B, value float64, unit string) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(value, unit)
}

// Must fails the benchmark if err is not nil.
func Must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
