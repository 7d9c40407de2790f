package redisengine

import (
	"strconv"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// Benchmark runs the shared benchmarks on one server, with the default number of shards and
// with that of a cluster.
func Benchmark(b *testing.B) {
	for _, shards := range []int{DefaultShards, DefaultClusterShards} {
		b.Run("Shards-"+strconv.Itoa(shards), func(b *testing.B) {
			s := redistest.Start(b)
			enginetest.Bench(b, func(b *testing.B) engine.Engine {
				s.Do("FLUSHALL")
				return openURL(b, s.URL(), "shards="+strconv.Itoa(shards))
			})
		})
	}
}
