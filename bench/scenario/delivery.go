package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long after the last due time and the last handled message the missing ones
// count as lost.
const patience = 15 * time.Second

// delivery is what the handlers have seen of messages that were scheduled beforehand.
type delivery struct {
	dues     []time.Time
	late     []time.Duration // by message; 0 if early
	seen     []atomic.Bool
	handled  atomic.Int64
	early    atomic.Int64
	twice    atomic.Int64
	first    atomic.Int64 // start of the first handler, in Unix nanoseconds
	progress atomic.Int64 // start of the latest handler, in Unix nanoseconds
}

func newDelivery(n int) *delivery {
	return &delivery{dues: make([]time.Time, n), late: make([]time.Duration, n), seen: make([]atomic.Bool, n)}
}

// schedule pushes n messages, each due at due(first, i), and makes sure that all are pushed
// before the first is due. It estimates the time for that with a few other messages.
func schedule(b *testing.B, s System, n int, due func(first time.Time, i int) time.Time) *delivery {
	const probe = 5000
	began := time.Now()
	Fill(b, s, fmt.Sprint("probe-", began.UnixMilli()), probe) // the time in the name keeps it new in a kept store
	first := time.Now().Add(2*time.Second + 3*time.Since(began)*time.Duration(n)/probe).Truncate(time.Millisecond)
	d := newDelivery(n)
	for i := range n {
		d.dues[i] = due(first, i)
	}
	Each(b, Clients, n, 100, func(ctx context.Context, from, to int) error {
		return s.PushMany(ctx, Queue, from, to, func(i int) time.Time { return d.dues[i] })
	})
	if time.Until(first) < time.Second {
		b.Fatal("the pushes took too long: messages would be late because of them")
	}
	return d
}

// started is called by the handler of message i.
func (d *delivery) started(i int) {
	now := time.Now()
	late := now.Sub(d.dues[i])
	if d.seen[i].Swap(true) {
		d.twice.Add(1)
		return
	}
	if late < 0 {
		d.early.Add(1)
	}
	d.late[i] = max(late, 0)
	d.first.CompareAndSwap(0, now.UnixNano())
	d.progress.Store(now.UnixNano())
	d.handled.Add(1)
}

// deliver runs a worker until the store holds none of the messages or no more come for a
// while. It returns when that was.
func (d *delivery) deliver(b *testing.B, s System) (end time.Time) {
	stop := s.Work(b, []string{Queue}, d.started)
	defer stop()
	return d.await(b, s)
}

// await waits for the end of deliver while a worker runs.
func (d *delivery) await(b *testing.B, s System) (end time.Time) {
	ctx, cancel := context.WithTimeout(b.Context(), longest)
	defer cancel()
	last := slices.MaxFunc(d.dues, time.Time.Compare)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case end = <-tick.C:
		case <-ctx.Done():
			b.Fatal(ctx.Err())
		}
		if sign := time.Unix(0, max(d.progress.Load(), last.UnixNano())); end.Sub(sign) > patience {
			if int(d.handled.Load()) == len(d.dues) {
				b.Fatal("all are handled, but the store still holds some")
			}
			return sign
		}
		if int(d.handled.Load()) < len(d.dues) {
			continue // no need to disturb the store yet
		}
		empty, err := s.Empty(ctx, Queue)
		Must(b, err)
		if empty {
			return time.Now()
		}
	}
}

// reportCounts reports the counts that must be zero.
func (d *delivery) reportCounts(b *testing.B) {
	Report(b, float64(d.early.Load()), "early")
	Report(b, float64(len(d.dues)-int(d.handled.Load())), "lost")
	Report(b, float64(d.twice.Load()), "twice")
}

// lateness returns the lateness of the handled messages.
func (d *delivery) lateness() (late []time.Duration) {
	for i := range d.dues {
		if d.seen[i].Load() {
			late = append(late, d.late[i])
		}
	}
	return late
}

// quantile returns the duration that the share q of d do not exceed; 0 if d is empty. It sorts
// d.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}
