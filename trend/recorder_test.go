package trend

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry"
)

// clock is a time that tests move.
type clock struct{ time.Time }

func (c *clock) now() time.Time        { return c.Time }
func (c *clock) sleep(d time.Duration) { c.Time = c.Add(d) }
func newClock() *clock                 { return &clock{time.Date(2030, 3, 1, 11, 59, 57, 0, time.UTC)} }
func with(c *clock, cfg Config) Config { cfg.Now = c.now; return cfg }
func (c *clock) recorder() *Recorder   { return c.recorderOf(Config{}) }
func (c *clock) recorderOf(cfg Config) *Recorder {
	cfg = with(c, cfg)
	return New(&cfg)
}

// seen is something that happened, as the model notes it.
type seen struct {
	at    time.Time
	queue string
	slot  Slot
}

// Whatever happens whenever, the steps of any series are what a list of all that happened
// sums up to, as far back as it is kept.
func TestSeriesAreWhatHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		r := c.recorder()
		m := r.Meter()
		var all []seen
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for range steps {
			queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
			s := seen{at: c.Time, queue: queue}
			n := rapid.IntRange(1, 300).Draw(t, "n")
			late := time.Duration(rapid.Int64Range(0, int64(30*time.Hour)).Draw(t, "late"))
			if rapid.Bool().Draw(t, "soon") {
				late /= 1 << 20
			}
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				m.Pushed(queue, tarry.Created, nil, n)
				s.slot.Counts[Pushed] = uint64(n)
			case 1:
				m.Settled(queue, tarry.Retried, n)
				s.slot.Counts[Retried] = uint64(n)
			case 2:
				m.Started(queue, late)
				s.slot.Lateness.observe(late)
			case 3:
				m.Handled([]tarry.Event{{Kind: tarry.Died, Queue: queue, Duration: late + 1}})
				s.slot.Counts[Died]++
				s.slot.Handling.observe(late + 1)
			case 4:
				m.Ended(queue, n, 0)
				s.slot.Counts[Expired] = uint64(n)
			}
			all = append(all, s)
			gap := rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, 50 * time.Second, time.Minute, 9 * time.Minute, time.Hour, 30 * time.Hour}).Draw(t, "gap")
			c.sleep(gap)
		}
		for _, x := range rapid.Permutation([]struct{ span, step time.Duration }{
			{15 * time.Minute, 10 * time.Second}, {15 * time.Minute, 5 * time.Minute}, {time.Minute, time.Minute}, {10 * time.Second, 10 * time.Second},
			{6 * time.Hour, time.Minute}, {time.Hour, 20 * time.Minute}, {72 * time.Hour, 10 * time.Minute}, {24 * time.Hour, time.Hour}, {72 * time.Hour, 72 * time.Hour},
		}).Draw(t, "series")[:2] {
			for _, queue := range []string{"a", "b", "nobody"} {
				got, err := r.Series(queue, x.span, x.step)
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Slots) != int(x.span/x.step) || got.From.After(c.Time.Add(x.step-x.span)) || !got.From.Add(x.span).After(c.Time) {
					t.Fatalf("%s by %s at %s: %d steps from %s", x.span, x.step, c.Time, len(got.Slots), got.From)
				}
				for i := range got.Slots {
					var want Slot
					from := got.From.Add(time.Duration(i) * x.step)
					for _, s := range all {
						if s.queue == queue && !s.at.Before(from) && s.at.Before(from.Add(x.step)) {
							want.add(&s.slot)
						}
					}
					if got.Slots[i] != want {
						t.Fatalf("%s of %s by %s: from %s it is\n%+v, want\n%+v", queue, x.span, x.step, from, got.Slots[i], want)
					}
				}
			}
		}
	})
}

func TestSeriesThatThereAreNot(t *testing.T) {
	r := New(nil)
	for _, c := range []struct {
		span, step time.Duration
		want       string
	}{
		{0, time.Second, "span: 0s is not within 72h"},
		{73 * time.Hour, time.Hour, "span: 73h is not within 72h"},
		{time.Minute, 0, "step: 0s is not a multiple of 10s"},
		{time.Minute, 15 * time.Second, "step: 15s is not a multiple of 10s"},
		{16 * time.Minute, 10 * time.Second, "step: 10s is not a multiple of 1m, the finest step of a span of 16m"},
		{7 * time.Hour, time.Minute, "step: 1m is not a multiple of 10m"},
		{15 * time.Minute, 2 * time.Minute, "step: the span of 15m is not a multiple of 2m"},
	} {
		if _, err := r.Series("q", c.span, c.step); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s by %s: %v, want %s", c.span, c.step, err, c.want)
		}
	}
}

// Who cancels, settles and pushes what fails makes no queue known, and nothing is counted.
func TestWhatFailsIsNotKept(t *testing.T) {
	r := New(nil)
	m := r.Meter()
	m.Pushed("q", 0, tarry.ErrExists, 1)
	m.Cancelled("q", tarry.ErrNotFound, 1)
	m.Settled("q", tarry.EngineFailed, 1)
	m.Ended("q", 0, -1)
	m.Leased("", 0)
	m.Handled([]tarry.Event{{Kind: tarry.EngineFailed}, {Kind: tarry.EngineFailed, Queue: "q"}})
	if got := r.Queues("", 10); len(got) != 0 {
		t.Errorf("known are %q", got)
	}
	if s, _ := r.Series(Other, time.Minute, time.Minute); s.Slots[0] != (Slot{}) {
		t.Errorf("kept is %+v", s.Slots[0])
	}
}

// Of more queues than may be kept apart those that rest for longest are forgotten, and none
// that does not rest.
func TestSoManyQueues(t *testing.T) {
	c := newClock()
	r := c.recorderOf(Config{MaxQueues: 3})
	m := r.Meter()
	push := func(queue string) { m.Pushed(queue, tarry.Created, nil, 1) }
	pushed := func(queue string) uint64 {
		s, err := r.Series(queue, time.Hour, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return s.Slots[0].Counts[Pushed]
	}
	for _, q := range []string{"b", "a", "c", "d", Other, ""} {
		push(q)
		c.sleep(time.Minute)
	}
	if got := r.Queues("", 10); !slices.Equal(got, []string{Other, "a", "b", "c"}) {
		t.Errorf("known are %q", got)
	}
	if got := pushed(Other); got != 3 {
		t.Errorf("%d pushes of others, want 3", got)
	}
	c.sleep(10 * time.Minute)
	push("b")
	c.sleep(minIdle - 10*time.Minute)
	push("e")
	if got := r.Queues("", 10); !slices.Equal(got, []string{Other, "b", "c", "e"}) || pushed("a") != 0 {
		t.Errorf("known are %q: the one that rests for longest is forgotten", got)
	}
	if got := r.Queues("b", 1); !slices.Equal(got, []string{"c"}) {
		t.Errorf("behind b comes %q", got)
	}
	if got := r.Queues("bb", 9); !slices.Equal(got, []string{"c", "e"}) {
		t.Errorf("behind bb comes %q", got)
	}
}

// A clock that is set back takes what would lie in the future with it; one that goes back a
// little takes nothing.
func TestClockStepsBack(t *testing.T) {
	c := newClock()
	r := c.recorder()
	m := r.Meter()
	m.Pushed("q", tarry.Created, nil, 5)
	c.sleep(-30 * time.Second)
	m.Pushed("q", tarry.Created, nil, 2)
	c.sleep(time.Minute)
	pushed := func() uint64 {
		s, err := r.Series("q", 15*time.Minute, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		total := s.Total()
		return total.Counts[Pushed]
	}
	if n := pushed(); n != 7 {
		t.Errorf("%d pushes, want 7", n)
	}
	c.sleep(-time.Hour)
	m.Pushed("q", tarry.Created, nil, 3)
	if n := pushed(); n != 3 {
		t.Errorf("%d pushes, want 3", n)
	}
}

// What was met while the clock was far ahead keeps no queue out once it is right again.
func TestClockWasAhead(t *testing.T) {
	c := newClock()
	r := c.recorderOf(Config{MaxQueues: 2})
	m := r.Meter()
	c.sleep(24 * 365 * time.Hour)
	for _, q := range []string{"a", "b", "c"} {
		m.Pushed(q, tarry.Created, nil, 1)
	}
	c.sleep(-24 * 365 * time.Hour)
	m.Pushed("d", tarry.Created, nil, 1)
	if got := r.Queues("", 10); !slices.Contains(got, "d") {
		t.Errorf("known are %q", got)
	}
}

// Many at once lose nothing.
func TestManyAtOnce(t *testing.T) {
	r := New(&Config{MaxQueues: 4})
	m := r.Meter()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 1000 {
				queue := fmt.Sprint("q", j%6)
				m.Pushed(queue, tarry.Created, nil, 1)
				for _, q := range []string{queue, "q1", "q1"} {
					m.Started(q, time.Duration(i))
				}
				if j%100 == 0 {
					_, _ = r.Series(queue, 15*time.Minute, time.Minute)
					r.Queues("", 3)
				}
			}
		})
	}
	all.Wait()
	var sum Slot
	for _, q := range r.Queues("", 10) {
		s, err := r.Series(q, 15*time.Minute, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		total := s.Total()
		sum.add(&total)
	}
	if sum.Counts[Pushed] != 8000 || sum.Lateness.Count() != 24_000 {
		t.Errorf("%d pushes, %d leases", sum.Counts[Pushed], sum.Lateness.Count())
	}
}

// heap is what is reachable.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// 10,000 queues that are always busy take no more than is said, however long, and each
// still has its last minutes.
func TestTenThousandQueues(t *testing.T) {
	c := newClock()
	before := heap()
	r := c.recorderOf(Config{MaxBytes: 6 << 20}) // less than the default: full in less time
	m := r.Meter()
	rnd := rand.New(rand.NewPCG(3, 4))
	queues := make([]string, DefaultMaxQueues)
	for i := range queues {
		queues[i] = fmt.Sprint("queue.", i)
	}
	const minutes = 4
	for range minutes * 6 {
		for _, q := range queues {
			for range 6 {
				m.Started(q, time.Duration(rnd.ExpFloat64()*float64(3*time.Millisecond)))
			}
			m.Settled(q, tarry.Acked, 6)
		}
		c.sleep(Resolution)
	}
	took := heap() - before
	runtime.KeepAlive(r)
	t.Logf("%d bytes, %d of them of slots", took, r.budget.used.Load())
	if used := r.budget.used.Load(); used > 6<<20 {
		t.Errorf("the slots take %d bytes, more than they may", used)
	}
	if most := uint64(6<<20 + 1700*len(queues)); took > most {
		t.Errorf("all takes %d bytes, want at most %d", took, most)
	}
	for _, q := range queues[:10] {
		s, err := r.Series(q, time.Minute, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.Series(q, 15*time.Minute, 10*time.Second)
		if total := all.Total(); err != nil || total.Counts[Acked] >= 6*6*minutes {
			t.Errorf("%s has forgotten nothing: the bound was not met", q)
		}
		for i, slot := range s.Slots[:len(s.Slots)-1] {
			if slot.Counts[Acked] != 6 || slot.Lateness.Count() != 6 {
				t.Errorf("%s: step %d has %v", q, i, slot.Counts)
			}
		}
	}
	c.sleep(time.Hour)
	for i := range 2 * len(queues) {
		m.Pushed(fmt.Sprint("new.", i), tarry.Created, nil, 1)
	}
	if n := len(r.Queues("", 1<<20)); n > DefaultMaxQueues+1 {
		t.Errorf("%d queues are kept apart", n)
	}
	var held int64
	r.named.Range(func(_, h any) bool {
		held += h.(*history).capacity()
		return true
	})
	if used := r.budget.used.Load(); used != held+r.other.capacity() {
		t.Errorf("%d bytes are counted, and %d held", used, held)
	}
}
