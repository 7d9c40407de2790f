package tarryprom_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/tarryprom"
)

// What metrics cost: messages pushed by 64 clients and handled by a worker, with and
// without, in turns, on an engine each; the medians of both and their difference are reported.
func BenchmarkCost(b *testing.B) {
	for name, open := range map[string]func() (engine.Engine, error){
		"mem":  func() (engine.Engine, error) { return memengine.New(nil), nil },
		"disk": func() (engine.Engine, error) { return diskengine.Open(b.TempDir(), nil) },
	} {
		b.Run(name, func(b *testing.B) {
			turn := func(cfg *tarry.Config, n int) float64 {
				eng, err := open()
				if err != nil {
					b.Fatal(err)
				}
				defer eng.Close()
				c := tarry.New(eng, cfg)
				defer c.Close()
				return float64(n) / through(b, c, n).Seconds()
			}
			const turns, messages = 15, 20_000
			var with, without []float64
			for b.Loop() {
				for range turns {
					without = append(without, turn(nil, messages))
					with = append(with, turn(&tarry.Config{Meter: tarryprom.New(nil).Meter()}, messages))
				}
			}
			slices.Sort(with)
			slices.Sort(without)
			on, off := with[len(with)/2], without[len(without)/2]
			b.ReportMetric(on, "with/s")
			b.ReportMetric(off, "without/s")
			b.ReportMetric(100*(off-on)/off, "%cost")
		})
	}
}

// through pushes and handles n messages, and returns how long that took.
func through(b *testing.B, c *tarry.Client, n int) time.Duration {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	w := tarry.NewWorker(c, nil)
	var left atomic.Int64
	left.Store(int64(n))
	tarry.Handle(w, tarry.NewTopic[[]byte]("q"), func(context.Context, *tarry.Message[[]byte]) error {
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	})
	start := time.Now()
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			for j := i; j < n; j += 64 {
				if _, err := c.Push(b.Context(), "q", make([]byte, 200), tarry.Key(strconv.Itoa(j))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	if err := w.Run(ctx); err != nil {
		b.Error(err)
	}
	clients.Wait()
	return time.Since(start)
}
