package redis

import (
	"context"
	"flag"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tarryhq/tarry/engine/redisengine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

var (
	maxPending = flag.Int("pending", 1_000_000, "most messages that CancelDepth and Idle let pend")
	burstSize  = flag.Int("burst", 100_000, "messages that Burst has due in one instant")
	rate       = flag.Int("rate", 1000, "messages due each second in Lateness")
	span       = flag.Duration("span", 20*time.Second, "how long Lateness and Idle last")
)

const (
	clients = 64 // concurrent callers, and handlers of a worker
	queue   = "bench"
	longest = 10 * time.Minute // bounds each step of a scenario
)

// system is one of those measured. Messages are numbers; their keys and bodies
// follow from them.
type system interface {
	// push schedules one message in a call of its own.
	push(ctx context.Context, queue string, i int, due time.Time) error
	// pushMany schedules messages from to to-1 in as few calls as there can be.
	pushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error
	cancel(ctx context.Context, queue string, i int) error
	// work has up to clients messages handled at a time. Each handler does no more
	// than to call started.
	work(b *testing.B, queues []string, started func(i int)) (stop func())
	// left counts what the store still holds of a queue, in any state.
	left(ctx context.Context, queue string) (int, error)
	close() error
}

var impls = []struct {
	name   string
	shards int // of a queue
	open   func(ctx context.Context, srv *redistest.Server) (system, error)
}{
	{"asynq", 1, openAsynq},
	{"tarry", redisengine.DefaultShards, openTarry("")},
	{"tarry-4-shards", 4, openTarry("&shards=4")},
}

// start starts a redis-server for all that one benchmark compares. It does not
// rewrite its log in the background, which would befall one or the other at random.
func start(b *testing.B) *redistest.Server {
	return redistest.Start(b, redistest.Args(
		"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"))
}

// connect returns a plain client of the server.
func connect(b *testing.B, srv *redistest.Server) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: srv.Addr(), ReadTimeout: time.Minute}) // FLUSHALL takes its time
	b.Cleanup(func() { must(b, c.Close()) })
	return c
}

// compare runs a benchmark for each system, on the same server.
func compare(b *testing.B, run func(b *testing.B, open func(b *testing.B) system)) {
	srv := start(b)
	for _, impl := range impls {
		b.Run("impl="+impl.name, func(b *testing.B) {
			run(b, func(b *testing.B) system { return fresh(b, srv, impl.open) })
		})
	}
}

// fresh empties the server and opens a system on it, warmed up.
func fresh(b *testing.B, srv *redistest.Server, open func(context.Context, *redistest.Server) (system, error)) system {
	must(b, connect(b, srv).FlushAll(b.Context()).Err())
	s, err := open(b.Context(), srv)
	must(b, err)
	b.Cleanup(func() { must(b, s.close()) })
	fill(b, s, "warm", 10*clients)
	return s
}

// once skips a benchmark that would be run again and again for one figure.
func once(b *testing.B) {
	if flag.Lookup("test.benchtime").Value.String() != "1x" {
		b.Skip("its size is given by flags: run it with -benchtime=1x")
	}
}

// report replaces the time an iteration takes by what was measured.
func report(b *testing.B, value float64, unit string) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(value, unit)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
