package timer_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/timer"
)

// epoch is where tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)

// model is a sorted list, the plainest thing that a Core may be compared to.
type model struct {
	list []modelEntry
	seen int
}

type modelEntry struct {
	due    time.Time
	value  int
	handle timer.Handle
}

func (m *model) sort() {
	slices.SortStableFunc(m.list, func(a, b modelEntry) int { return a.due.Compare(b.due) })
}

// grain is how a Core rounds a due: unit for the due that it yields, tick for
// when it yields it. Both are counted from base.
type grain struct {
	base       time.Time
	unit, tick time.Duration
}

func (g grain) up(t time.Time, step time.Duration) time.Time {
	d := t.Sub(g.base)
	q := d / step
	if d%step > 0 {
		q++
	}
	return g.base.Add(q * step)
}

// machine drives a Core and the model with the same calls.
type machine struct {
	core  timer.Core[int]
	model model
	grain grain
	now   time.Time
	stale []timer.Handle
	hops  bool // Next may come before anything is due
}

func (m *machine) schedule(t rapid.TB, due time.Time) {
	m.model.seen++
	h := m.core.Schedule(due, m.model.seen)
	if h == 0 {
		t.Fatal("zero handle")
	}
	m.model.list = append(m.model.list, modelEntry{due, m.model.seen, h})
}

func (m *machine) cancel(t rapid.TB, at int) {
	e := m.model.list[at]
	if v, ok := m.core.Cancel(e.handle); !ok || v != e.value {
		t.Fatalf("cancel: got %d, %t; want %d", v, ok, e.value)
	}
	m.model.list = slices.Delete(m.model.list, at, at+1)
	m.stale = append(m.stale, e.handle)
}

func (m *machine) reset(t rapid.TB, at int, due time.Time) {
	if !m.core.Reset(m.model.list[at].handle, due) {
		t.Fatal("reset: handle is stale")
	}
	m.model.list[at].due = due
}

// advance moves the clock and takes up to most entries.
func (m *machine) advance(t rapid.TB, now time.Time, most int) {
	m.now = now
	m.model.sort()
	floor := m.grain.up(now.Add(1), m.grain.tick).Add(-m.grain.tick)
	due := 0
	for _, e := range m.model.list {
		if !e.due.After(floor) {
			due++
		}
	}
	taken, last := 0, time.Time{}
	for at, v := range m.core.Advance(now) {
		i := slices.IndexFunc(m.model.list, func(e modelEntry) bool { return e.value == v })
		if i < 0 {
			t.Fatalf("yielded %d, which is not pending", v)
		}
		e := m.model.list[i]
		if e.due.After(now) {
			t.Fatalf("yielded %d %v early", v, e.due.Sub(now))
		}
		if want := m.grain.up(e.due, m.grain.unit); !at.Equal(want) {
			t.Fatalf("yielded %d with due %v, want %v", v, at, want)
		}
		if at.Before(last) {
			t.Fatalf("yielded %v after %v", at, last)
		}
		last = at
		m.model.list = slices.Delete(m.model.list, i, i+1)
		m.stale = append(m.stale, e.handle)
		if taken++; taken == most {
			break
		}
	}
	if want := min(most, due); taken != want {
		t.Fatalf("advance to %v yielded %d, want %d", now, taken, want)
	}
}

func (m *machine) check(t rapid.TB) {
	if m.core.Len() != len(m.model.list) {
		t.Fatalf("len %d, want %d", m.core.Len(), len(m.model.list))
	}
	next, ok := m.core.Next()
	if ok != (len(m.model.list) > 0) {
		t.Fatalf("next: %t with %d pending", ok, len(m.model.list))
	}
	if ok {
		least := slices.MinFunc(m.model.list, func(a, b modelEntry) int { return a.due.Compare(b.due) })
		want := m.grain.up(m.grain.up(least.due, m.grain.unit), m.grain.tick)
		if next.After(want) || !m.hops && !next.Equal(want) {
			t.Fatalf("next %v, want %v", next, want)
		}
	}
	if len(m.stale) > 0 {
		h := m.stale[rand.IntN(len(m.stale))]
		if _, ok := m.core.Cancel(h); ok {
			t.Fatal("cancelled by a stale handle")
		}
		if m.core.Reset(h, m.now) {
			t.Fatal("reset by a stale handle")
		}
	}
}

// span draws durations of every magnitude, backwards too.
func span() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		scale := rapid.SampledFrom([]time.Duration{
			time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, 48 * time.Hour,
		}).Draw(t, "scale")
		return time.Duration(rapid.Int64Range(-int64(scale)/8, int64(scale)).Draw(t, "span"))
	})
}

// run is a random history.
func (m *machine) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) { m.check(t) },
		"schedule": func(t *rapid.T) {
			m.schedule(t, m.now.Add(span().Draw(t, "due")))
		},
		"burst": func(t *rapid.T) {
			due := m.now.Add(span().Draw(t, "due"))
			for range rapid.IntRange(1, 60).Draw(t, "n") {
				m.schedule(t, due)
				due = due.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "apart")) * time.Microsecond / 100)
			}
		},
		"cancel": func(t *rapid.T) {
			if len(m.model.list) > 0 {
				m.cancel(t, rapid.IntRange(0, len(m.model.list)-1).Draw(t, "which"))
			}
		},
		"cancel many": func(t *rapid.T) {
			for range rapid.IntRange(0, len(m.model.list)).Draw(t, "n") {
				m.cancel(t, len(m.model.list)-1)
			}
		},
		"reset": func(t *rapid.T) {
			if len(m.model.list) > 0 {
				m.reset(t, rapid.IntRange(0, len(m.model.list)-1).Draw(t, "which"), m.now.Add(span().Draw(t, "due")))
			}
		},
		"advance": func(t *rapid.T) {
			m.advance(t, m.now.Add(span().Draw(t, "by")), rapid.SampledFrom([]int{1, 5, 1 << 30}).Draw(t, "most"))
		},
	})
}

func newWheelMachine(tick time.Duration) *machine {
	unit := time.Microsecond
	if tick%unit != 0 {
		unit = 1
	}
	return &machine{
		core:  timer.NewWheel[int](tick, epoch),
		grain: grain{epoch.Truncate(tick), unit, tick},
		now:   epoch,
	}
}

var ticks = []time.Duration{1, 7, time.Microsecond, time.Millisecond, 7 * time.Millisecond, time.Second, time.Hour}

func TestWheelAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newWheelMachine(rapid.SampledFrom(ticks).Draw(t, "tick")).run(t)
	})
}

func TestRingAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := rapid.SampledFrom([]time.Duration{time.Millisecond, 7 * time.Millisecond, time.Second, time.Hour}).Draw(t, "tick")
		slots := rapid.SampledFrom([]int{1, 2, 60, 64, 65, 3600}).Draw(t, "slots")
		m := newWheelMachine(tick)
		m.core, m.hops = timer.NewRing[int](slots, tick, epoch), true
		m.run(t)
	})
}

func TestHeapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newWheelMachine(1)
		m.core = timer.NewHeap[int](epoch)
		m.run(t)
	})
}
