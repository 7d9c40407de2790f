package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
	"github.com/tarryhq/tarry/engine/redisengine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

type impl struct {
	name   string
	shards int // of a queue
	open   func(ctx context.Context, srv *redistest.Server) (scenario.System, error)
}

var impls = []impl{
	{"asynq", 1, func(_ context.Context, srv *redistest.Server) (scenario.System, error) {
		return peer.Asynq(srv.Addr()), nil
	}},
	{"tarry", redisengine.DefaultShards, openTarry("")},
	{"tarry-4-shards", 4, openTarry("&shards=4")},
}

func BenchmarkPush(b *testing.B)      { compare(b, scenario.Push) }
func BenchmarkPushBatch(b *testing.B) { compare(b, scenario.PushBatch) }
func BenchmarkCancel(b *testing.B)    { compare(b, scenario.Cancel) }
func BenchmarkLateness(b *testing.B)  { compare(b, scenario.Lateness) }
func BenchmarkBurst(b *testing.B)     { compare(b, scenario.Burst) }

func BenchmarkCancelDepth(b *testing.B) {
	compare(b, func(b *testing.B, open scenario.Open) {
		scenario.Once(b)
		for _, pending := range []int{1000, *scenario.Pending} {
			b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
				s := open(b)
				scenario.Fill(b, s, scenario.Queue, pending)
				scenario.CancelAmong(b, s, pending)
			})
		}
	})
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
	b.Cleanup(func() { scenario.Must(b, c.Close()) })
	return c
}

// compare runs a benchmark for each system, on the same server.
func compare(b *testing.B, run func(b *testing.B, open scenario.Open)) {
	srv := start(b)
	for _, impl := range impls {
		b.Run("impl="+impl.name, func(b *testing.B) {
			run(b, func(b *testing.B) scenario.System { return impl.fresh(b, srv) })
		})
	}
}

// fresh empties the server and opens the system on it.
func (i impl) fresh(b *testing.B, srv *redistest.Server) scenario.System {
	scenario.Must(b, connect(b, srv).FlushAll(b.Context()).Err())
	s, err := i.open(b.Context(), srv)
	return scenario.Warm(b, s, err)
}

// openTarry opens the Redis engine with further parameters in its URL.
func openTarry(params string) func(context.Context, *redistest.Server) (scenario.System, error) {
	return func(ctx context.Context, srv *redistest.Server) (scenario.System, error) {
		return scenario.OpenTarry(ctx, srv.URL()+"?prefix=bench"+params)
	}
}
