package diskengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Forecast counts the scheduled and ready messages of a queue by due time.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) (f engine.Forecast, err error) {
	if err := engine.CheckForecast(name, step, span); err != nil {
		return f, err
	}
	buckets := make([]engine.Bucket, span/step)
	var at []int64 // where the buckets begin, and the last ends, by the clock when the call began
	err = e.do(ctx, "forecast", func(c *call) error {
		const minute = 60_000
		var t tally
		times := func(c *call) []int64 {
			if at != nil {
				return at
			}
			first := c.ms - (c.ms%minute+minute)%minute
			at = make([]int64, len(buckets)+1)
			for i := range at {
				at[i] = first + int64(i)*step.Milliseconds()
			}
			return at
		}
		done, last := 0, int64(0)
		err := c.tallied(name, &t, times, func(q *queue) error {
			if done == 0 {
				last = t.upTo(c, q, 0)
				f.Overdue = max(0, last)
			}
			for n := 0; done < len(buckets); n++ {
				if n == store.StepItems {
					return errYield
				}
				now := t.upTo(c, q, done+1)
				buckets[done].Count = now - last
				last = now
				done++
			}
			return nil
		})
		times(c) // also if there is no such queue
		return err
	})
	if err != nil {
		return f, err
	}
	for i := range buckets {
		buckets[i].From = rules.Instant(at[i])
		buckets[i].Count = max(0, buckets[i].Count)
	}
	f.Buckets = buckets
	return f, nil
}
