//go:build linux

package measure

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
)

// patience is how long after the last due time and the last message the missing ones count
// as lost.
const patience = 20 * time.Second

// delivery is what the handlers see of a load.
type delivery struct {
	load peer.Load

	mu                     sync.Mutex
	seen                   []bool
	late                   measured.Distribution
	handled, early, others int
	twice                  int
	first, last            time.Time
	most                   time.Duration
	progress               atomic.Int64
}

func newDelivery(l peer.Load) *delivery {
	return &delivery{load: l, seen: make([]bool, l.To-l.From), late: measured.Distribution{}}
}

// started is called for each message as its handler starts.
func (d *delivery) started(i int, at time.Time) {
	late := at.Sub(d.load.Due(i))
	d.mu.Lock()
	defer d.mu.Unlock()
	switch i -= d.load.From; {
	case i < 0 || i >= len(d.seen):
		d.others++
		return
	case d.seen[i]:
		d.twice++
		return
	}
	d.seen[i] = true
	d.handled++
	d.late.Add(late)
	d.most = max(d.most, late)
	if late < 0 {
		d.early++
	}
	if d.first.IsZero() {
		d.first = at
	}
	d.last = at
	d.progress.Store(at.UnixNano())
}

func (d *delivery) missing() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen) - d.handled
}

// await waits until all are handled and the system holds none, or until no more come for a
// while, and returns when the last was acked.
func (d *delivery) await(ctx context.Context, s scenario.System) (end time.Time, err error) {
	lastDue := d.load.Due(d.load.To - 1)
	for {
		time.Sleep(5 * time.Millisecond)
		now := time.Now()
		if sign := time.Unix(0, max(d.progress.Load(), lastDue.UnixNano())); now.Sub(sign) > patience {
			return sign, nil
		}
		if d.missing() > 0 {
			continue // no need to disturb the system yet
		}
		if empty, err := s.Empty(ctx, scenario.Queue); err != nil || empty {
			return now, err
		}
	}
}

// work has workers handle messages.
func work(b *testing.B, s scenario.System, started func(i int, at time.Time)) (stop func()) {
	queues := []string{scenario.Queue}
	if s, ok := s.(interface {
		WorkTimed(b *testing.B, queues []string, started func(i int, at time.Time)) (stop func())
	}); ok {
		return s.WorkTimed(b, queues, started)
	}
	return s.Work(b, queues, func(i int) { started(i, time.Now()) })
}

// deliver pushes the load, which begins once all are pushed, and has it handled.
func (p *place) deliver(b *testing.B, s scenario.System, l peer.Load) (figures map[string]float64, late measured.Distribution) {
	l.Kind, l.Queue, l.Clients, l.Batch = "push", scenario.Queue, 8, 100
	if p.ordered {
		l.Clients = 1
	}
	l.First = time.Now().Add(2*time.Second + takes(b, s, l)).Truncate(time.Second).Add(time.Second)
	_, _, err := peer.Run(b.Context(), s, l)
	scenario.Must(b, err)
	if time.Until(l.First) < time.Second/2 {
		b.Fatal("the pushes took too long: messages would be late because of them")
	}
	d := newDelivery(l)
	stop := work(b, s, d.started)
	defer stop()
	time.Sleep(time.Until(l.First) - 100*time.Millisecond)
	cpu := scenario.CPU()
	end, err := d.await(b.Context(), s)
	scenario.Must(b, err)
	used := scenario.CPU() - cpu
	d.mu.Lock()
	defer d.mu.Unlock()
	n := float64(len(d.seen))
	return map[string]float64{
		"early": float64(d.early), "lost": n - float64(d.handled), "twice": float64(d.twice),
		"cpu-us/msg": used.Seconds() * 1e6 / n, "max-ms": d.most.Seconds() * 1e3,
		"s": end.Sub(l.First).Seconds(), "first-ms": d.first.Sub(l.First).Seconds() * 1e3,
	}, d.late
}

// takes guesses how long pushing a load takes by pushing some other messages.
func takes(b *testing.B, s scenario.System, l peer.Load) time.Duration {
	const probe = 2000
	n := l.To - l.From
	l.Queue, l.From, l.To, l.First, l.Step = aside, probes, probes+probe, time.Now().Add(24*time.Hour), 0
	_, took, err := peer.Run(b.Context(), s, l)
	scenario.Must(b, err)
	return 3 * took * time.Duration(n) / probe
}

const (
	aside  = "warm"  // the queue of messages that only prepare
	beyond = 1 << 30 // the number of the first of these
)

// probes and last are numbers in aside, too, which no process before has used in a store.
var (
	probes = beyond + 1<<20 + 4000*int(time.Now().Unix()%250_000)
	last   = probes - 1
)
