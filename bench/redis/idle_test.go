package redis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tarryhq/tarry/bench/scenario"
)

// BenchmarkIdle counts what the server has to do for a worker with nothing to do,
// which waits on queues of 8 shards together: the commands it executes, those in
// scripts too, and the requests that carry them.
func BenchmarkIdle(b *testing.B) {
	const shards, settle = 8, 3 * time.Second
	scenario.Once(b)
	srv := start(b)
	for _, impl := range impls {
		var queues []string
		for i := range max(shards/impl.shards, 1) {
			queues = append(queues, fmt.Sprint(scenario.Queue, i))
		}
		for _, pending := range []int{0, *scenario.Pending} {
			b.Run(fmt.Sprintf("impl=%s/pending=%d", impl.name, pending), func(b *testing.B) {
				s := impl.fresh(b, srv)
				for _, q := range queues {
					scenario.Fill(b, s, q, pending/len(queues))
				}
				stop := s.Work(b, queues, func(int) {})
				defer stop()
				redis := connect(b, srv)
				time.Sleep(settle)
				began, before := time.Now(), stats(b, redis)
				time.Sleep(*scenario.Span)
				took, after := time.Since(began), stats(b, redis)
				for unit, stat := range map[string]string{"commands/s": "total_commands_processed", "requests/s": "total_reads_processed"} {
					own := 1.0 // the first look counts in the second
					scenario.Report(b, (after[stat]-before[stat]-own)/took.Seconds(), unit)
				}
			})
		}
	}
}

// stats reads the counters of the server.
func stats(b *testing.B, redis *goredis.Client) map[string]float64 {
	text, err := redis.Info(b.Context(), "stats").Result()
	scenario.Must(b, err)
	counters := make(map[string]float64)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			counters[name] = f
		}
	}
	return counters
}
