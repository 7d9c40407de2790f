//go:build linux

package disk

import (
	"context"
	"flag"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

var instantSize = flag.Int("instant", 0, "messages that fall due in one instant in BenchmarkSystem/instant")

// instant has a great many messages fall due at once, and be handled and acked, beside one each
// millisecond in another queue, and tells how late those are.
func instant(b *testing.B, open scenario.Open) {
	scenario.Once(b)
	if *instantSize == 0 {
		b.Skip("-instant says no number")
	}
	n, s := *instantSize, open(b)
	pushing := time.Now()
	due := pushing.Add(200*time.Millisecond + time.Duration(n)*10*time.Microsecond).Truncate(time.Millisecond)
	scenario.Each(b, fewClients, n, batchSize, func(ctx context.Context, from, to int) error {
		return s.PushMany(ctx, scenario.Queue, from, to, func(int) time.Time { return due })
	})
	scenario.Report(b, float64(n)/time.Since(pushing).Seconds(), "pushed/s")
	seen := make([]uint64, (n+63)/64)
	var handled, twice, early atomic.Int64
	stop := s.Work(b, []string{scenario.Queue}, func(i int) {
		if time.Now().Before(due) {
			early.Add(1)
		}
		if bit := uint64(1) << (i % 64); atomic.OrUint64(&seen[i/64], bit)&bit != 0 {
			twice.Add(1)
		}
		handled.Add(1)
	})
	defer stop()
	time.Sleep(time.Until(due))
	began, cpu := time.Now(), scenario.CPU()
	others := watchOthers(b, s)
	for last, since := int64(0), began; handled.Load() < int64(n) && time.Since(since) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if now := handled.Load(); now > last {
			last, since = now, time.Now()
		}
	}
	took := time.Since(began)
	scenario.Report(b, took.Seconds(), "s")
	scenario.Report(b, 1e6*(scenario.CPU()-cpu).Seconds()/float64(n), "cpu-us/msg")
	scenario.Report(b, float64(early.Load()), "early")
	scenario.Report(b, float64(twice.Load()), "twice")
	scenario.Report(b, float64(int64(n)-handled.Load()+twice.Load()), "lost")
	others.report(b)
}

// others are messages of another queue that fall due while a great many are handled.
type others struct {
	stop func()
	late []time.Duration
	lost int
}

// watchOthers pushes one each millisecond until it is stopped.
func watchOthers(b *testing.B, s scenario.System) *others {
	const queue, ahead, most = "other", 100 * time.Millisecond, 10_000_000
	o := new(others)
	start := time.Now().Add(ahead).Truncate(time.Millisecond)
	dueOf := func(i int) time.Time { return start.Add(time.Duration(i) * time.Millisecond) }
	var mu sync.Mutex
	handled := make(chan struct{}, 1)
	work := s.Work(b, []string{queue}, func(i int) {
		late := time.Since(dueOf(i - most))
		mu.Lock()
		defer mu.Unlock()
		o.late = append(o.late, late)
		select {
		case handled <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(b.Context())
	pushed := make(chan int)
	go func() {
		n := 0
		defer func() { pushed <- n }()
		for ctx.Err() == nil {
			to := int(time.Since(start.Add(-ahead)) / time.Millisecond)
			if to > n {
				if err := s.PushMany(context.WithoutCancel(ctx), queue, most+n, most+to, func(i int) time.Time { return dueOf(i - most) }); err != nil {
					b.Error(err)
					return
				}
				n = to
			}
			time.Sleep(time.Millisecond)
		}
	}()
	o.stop = func() {
		cancel()
		n := <-pushed
		for seen, over := 0, false; !over && seen < n; {
			select {
			case <-handled:
			case <-time.After(15 * time.Second):
				over = true
			}
			mu.Lock()
			seen = len(o.late)
			o.lost = n - seen
			mu.Unlock()
		}
		work()
	}
	return o
}

func (o *others) report(b *testing.B) {
	o.stop()
	slices.Sort(o.late)
	scenario.Report(b, float64(o.lost), "others-lost")
	if n := len(o.late); n > 0 {
		scenario.Report(b, float64(o.late[n/2])/1e6, "others-p50-ms")
		scenario.Report(b, float64(o.late[n*99/100])/1e6, "others-p99-ms")
		scenario.Report(b, float64(o.late[n-1])/1e6, "others-max-ms")
	}
}
