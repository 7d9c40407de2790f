package workertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// BenchSchedules measures b.N schedules that fire at one instant: how long after it the first,
// the middle and the last of their messages is handled.
func BenchSchedules(b *testing.B, c *tarry.Client) {
	topic := tarry.NewTopic[string]("schedules.at-once")
	at := time.Now().Add(time.Second + time.Duration(b.N)*5*time.Millisecond).Truncate(time.Second)
	var set sync.WaitGroup
	for part := range 16 {
		set.Go(func() {
			for i := part; i < b.N; i += 16 {
				s, err := tarry.NewSchedule(fmt.Sprint("at-once/", i), "@every 24h", topic, "body")
				s.Start = at
				if err == nil {
					_, err = c.SetSchedule(b.Context(), s, "")
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	set.Wait()
	if time.Now().After(at) {
		b.Skipf("setting %d schedules took until their instant", b.N)
	}
	var mu sync.Mutex
	late := make([]time.Duration, 0, b.N)
	seen := make(map[string]bool, b.N)
	ctx, stop := context.WithCancel(b.Context())
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true})
	tarry.Handle(w, topic, func(_ context.Context, m *tarry.Message[string]) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[m.Key] {
			b.Errorf("%s came twice", m.Key)
		}
		seen[m.Key] = true
		if late = append(late, time.Since(at)); len(late) == b.N {
			stop()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		b.Error(err)
	}
	for name, d := range map[string]time.Duration{"ms-first": late[0], "ms-half": late[len(late)/2], "ms-last": late[len(late)-1]} {
		b.ReportMetric(float64(d.Microseconds())/1000, name)
	}
	for i := range b.N {
		if err := c.RemoveSchedule(b.Context(), fmt.Sprint("at-once/", i), ""); err != nil {
			b.Error(err)
		}
	}
}
