package enginetest

import (
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var countTests = []test{
	{"queues by name, over pages", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		prefix := b.queue + "-"
		var want []string
		for i := range 5 {
			b.queue = fmt.Sprintf("%sq%d", prefix, i)
			want = append(want, b.queue)
			for range i + 1 {
				b.push(b.msg("", dueLater))
			}
		}
		if b.caps.Pause {
			b.queue = prefix + "r"
			want = append(want, b.queue)
			b.is(b.e.(engine.Pauser).Pause(b.Context(), b.queue, 0), nil)
		}
		for _, limit := range []int{1, 4, 100} {
			var got []engine.QueueInfo
			for after := prefix; ; {
				page, next, err := c.Queues(b.Context(), after, limit)
				if err != nil || len(page) > limit {
					b.Fatalf("%v, %d queues for limit %d", err, len(page), limit)
				}
				got = append(got, page...)
				if after = next; next == "" || len(got) >= len(want) {
					break
				}
			}
			if len(got) < len(want) {
				b.Fatalf("%d queues, want %v", len(got), want)
			}
			for i, name := range want {
				if got[i].Queue != name || i < 5 && got[i].Scheduled != int64(i+1) || got[i].Paused != (i == 5) {
					b.Errorf("limit %d, queue %d: %+v, want %s", limit, i, got[i], name)
				}
			}
		}
	}},
	{"an empty queue is not listed", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.push(b.msg("k", dueNow))
		b.ack(b.lease1(0).Token)
		page, _, err := c.Queues(b.Context(), b.queue[:len(b.queue)-1], 1)
		if err != nil || len(page) == 1 && page[0].Queue == b.queue {
			b.Fatalf("%v, %+v", err, page)
		}
	}},
}

// counts fails the test unless the bed's queue holds exactly these numbers.
func (b *bed) counts(c engine.Counter, scheduled, ready, leased, dead int) engine.QueueInfo {
	b.Helper()
	q, err := c.Queue(b.Context(), b.queue)
	b.is(err, nil)
	if q.Scheduled != int64(scheduled) || q.Ready != int64(ready) || q.Leased != int64(leased) || q.Dead != int64(dead) {
		b.Fatalf("%+v; want %d scheduled, %d ready, %d leased, %d dead", q, scheduled, ready, leased, dead)
	}
	return q
}

var forecastTests = []test{
	{"counts by due time", func(b *bed) {
		f := optional[engine.Forecaster](b, "Forecast", b.caps.Forecast)
		base := b.now().Truncate(time.Hour).Add(2 * time.Hour)
		for _, minute := range []int{0, 0, 1, 59, 60, 61, 119, 120, 6000} {
			b.push(b.msg("", engine.When{At: base.Add(time.Duration(minute)*time.Minute + 30*time.Second)}))
		}
		b.push(b.msg("", dueNow))
		count := func(step, span time.Duration, from, to time.Time) (n int64) {
			all, err := f.Forecast(b.Context(), b.queue, step, span)
			buckets := all.Buckets
			if err != nil || len(buckets) != int(span/step) {
				b.Fatalf("%v, %d buckets of %v for %v", err, len(buckets), step, span)
			}
			if d := b.now().Sub(buckets[0].From); d < 0 || d > 2*time.Minute || !buckets[0].From.Equal(buckets[0].From.Truncate(time.Minute)) {
				b.Fatalf("the first bucket is from %v", buckets[0].From)
			}
			if from.IsZero() {
				n = all.Overdue
			}
			for i, x := range buckets {
				if !x.From.Equal(buckets[0].From.Add(time.Duration(i) * step)) {
					b.Fatalf("bucket %d is from %v", i, x.From)
				}
				if !x.From.Before(from) && x.From.Before(to) {
					n += x.Count
				}
			}
			return n
		}
		end := base.Add(1000 * time.Hour)
		for minute, want := range map[int]int64{0: 2, 1: 1, 2: 0, 58: 0, 59: 1, 60: 1, 61: 1, 119: 1, 120: 1, 121: 0} {
			at := base.Add(time.Duration(minute) * time.Minute)
			if n := count(time.Minute, 10*time.Hour, at, at.Add(time.Minute)); n != want {
				b.Errorf("minute %d: %d, want %d", minute, n, want)
			}
		}
		last := base.Add(120 * time.Minute)
		if n := count(time.Minute, last.Add(time.Minute).Sub(b.now().Truncate(time.Minute)), last, end); n != 1 {
			b.Errorf("%d in the last minute, want 1", n)
		}
		if n := count(30*time.Minute, 24*time.Hour, time.Time{}, end); n != 9 {
			b.Errorf("%d within a day or overdue, want 9", n)
		}
		if n := count(time.Hour, 240*time.Hour, base.Add(-59*time.Minute), end); n != 9 {
			b.Errorf("%d within ten days, want 9", n)
		}
	}},
	{"what is overdue stands apart", func(b *bed) {
		f := optional[engine.Forecaster](b, "Forecast", b.caps.Forecast)
		for _, ago := range []time.Duration{2 * time.Minute, time.Hour, 24000 * time.Hour} {
			for range 3 {
				b.push(b.msg("", engine.When{At: b.now().Add(-ago)}))
			}
		}
		b.push(b.msg("", engine.When{In: 2 * time.Hour}))
		b.bury(b.leaseN(2, 0)[0].Token, "x")
		for _, steps := range []time.Duration{180, 10_000} { // some engines count many steps in several calls
			all, err := f.Forecast(b.Context(), b.queue, time.Minute, steps*time.Minute)
			n := int64(0)
			for _, x := range all.Buckets {
				n += x.Count
			}
			if err != nil || all.Overdue != 7 || n != 1 {
				b.Fatalf("%v, %d overdue and %d coming", err, all.Overdue, n)
			}
		}
	}},
	{"an unknown queue has empty buckets", func(b *bed) {
		f := optional[engine.Forecaster](b, "Forecast", b.caps.Forecast)
		all, err := f.Forecast(b.Context(), b.queue, 5*time.Minute, time.Hour)
		if err != nil || len(all.Buckets) != 12 || all.Overdue != 0 {
			b.Fatalf("%v, %+v", err, all)
		}
		for _, x := range all.Buckets {
			if x.Count != 0 {
				b.Fatalf("%+v", all)
			}
		}
	}},
}
