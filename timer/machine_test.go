package timer_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// epoch is where tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)

// machine makes the calls that a tape says on a Core and on the plainest thing
// that one may be compared to: a list that is searched from end to end.
type machine struct {
	core   timer.Core[int]
	loan   func(now time.Time, n int) []timer.Timer[int]
	repaid func(timer.Handle)
	check  func() error // looks for what is broken inside the core
	before func()       // called before each step
	grain  grain
	hops   bool // Next may come before anything is due
	stable bool // equal dues come in the order of scheduling

	now     time.Time
	latest  time.Time // the latest now
	list    []pending
	place   map[int]int // of a value in list
	values  int
	stale   []timer.Handle
	anchors [6]time.Time // dues to come back to
	foreign timer.Handle // of another core
	tape    []byte
}

type pending struct {
	due    time.Time
	value  int
	handle timer.Handle
}

// grain is how a Core rounds a due: unit for the due that it yields, tick for
// when it yields it. Both are counted from base.
type grain struct {
	base       time.Time
	unit, tick time.Duration
}

func newGrain(tick time.Duration) grain {
	unit := time.Microsecond
	if tick%unit != 0 {
		unit = 1
	}
	return grain{epoch.Truncate(tick), unit, tick}
}

func (g grain) up(t time.Time, step time.Duration) time.Time {
	d := t.Sub(g.base)
	q := d / step
	if d%step > 0 {
		q++
	}
	return g.base.Add(q * step)
}

// floor is the last tick at or before t.
func (g grain) floor(t time.Time) time.Time { return g.up(t.Add(1), g.tick).Add(-g.tick) }

const (
	year    = 365 * 24 * time.Hour
	century = 100 * year
)

// far says that a due is too far away for a Duration, and on which side.
func (g grain) far(t time.Time) int {
	switch d := t.Sub(g.base); {
	case d > 125*year:
		return 1
	case d < -125*year:
		return -1
	}
	return 0
}

// byte takes the next byte from the tape, or 0 at its end.
func (m *machine) byte() int {
	if len(m.tape) == 0 {
		return 0
	}
	b := m.tape[0]
	m.tape = m.tape[1:]
	return int(b)
}

// span is a duration of any magnitude, from a nanosecond to four years.
func (m *machine) span() time.Duration {
	magnitude := m.byte() % 52
	return time.Duration(16+m.byte()%16) << magnitude
}

// due is an instant around now, around an earlier one, or on the boundary of
// wheels.
func (m *machine) due() (due time.Time) {
	kind, anchor := m.byte(), m.byte()%len(m.anchors)
	switch kind % 8 {
	case 0, 1, 2:
		due = m.now.Add(m.span())
	case 3:
		due = m.now.Add(-m.span())
	case 4, 5:
		due = m.anchors[anchor].Add(time.Duration(m.byte()-64) * m.grain.unit)
	case 6:
		due = m.anchors[anchor].Add(time.Duration(m.byte()) << (6 * (m.byte() % 5)) * m.grain.unit)
	case 7:
		step := 64 * m.grain.unit << (6 * (m.byte() % 5))
		due = m.grain.up(m.anchors[anchor], step).Add(time.Duration(m.byte()%4-2) * m.grain.unit)
	}
	if m.grain.far(due) != 0 {
		due = m.now
	}
	m.anchors[anchor] = due
	return due
}

func (m *machine) schedule(due time.Time) error {
	m.values++
	h := m.core.Schedule(due, m.values)
	if h == 0 {
		return errors.New("schedule: zero handle")
	}
	m.place[m.values] = len(m.list)
	m.list = append(m.list, pending{due, m.values, h})
	return nil
}

// forget takes an entry out of the list.
func (m *machine) forget(at int) {
	e, last := m.list[at], len(m.list)-1
	m.list[at] = m.list[last]
	m.place[m.list[at].value] = at
	m.list = m.list[:last]
	delete(m.place, e.value)
	m.stale = append(m.stale, e.handle)
}

func (m *machine) cancel(at int) error {
	e := m.list[at]
	if v, ok := m.core.Cancel(e.handle); !ok || v != e.value {
		return fmt.Errorf("cancel: got %d, %t; want %d", v, ok, e.value)
	}
	m.forget(at)
	return nil
}

func (m *machine) reset(at int, due time.Time) error {
	if !m.core.Reset(m.list[at].handle, due) {
		return fmt.Errorf("reset of %d: its handle is stale", m.list[at].value)
	}
	m.list[at].due = due
	return nil
}

// several calls f for some entries: one in so many, up to so many.
func (m *machine) several(f func(at int) error) error {
	step, most := 1+m.byte()%4, m.byte()
	if most > 250 {
		most = len(m.list)
	}
	// From the back, as f may take the entry out and put the last in its place.
	at := len(m.list) - 1 - m.byte()*len(m.list)/256
	for ; at >= 0 && most > 0; at, most = at-step, most-1 {
		if err := f(at); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the clock and takes up to most entries.
func (m *machine) advance(now time.Time, most int, poll bool) error {
	if m.grain.far(now) != 0 {
		return nil
	}
	m.now = now
	if now.After(m.latest) {
		m.latest = now
	}
	floor := m.grain.floor(now)
	want := 0
	for _, e := range m.list {
		if far := m.grain.far(e.due); far < 0 || far == 0 && !m.grain.up(e.due, m.grain.unit).After(floor) {
			want++
		}
	}
	taken, last, lastValue := 0, time.Time{}, 0
	take := func(at time.Time, v int) error {
		i, ok := m.place[v]
		if !ok {
			return fmt.Errorf("yielded %d, which is not pending", v)
		}
		e := m.list[i]
		if e.due.After(now) {
			return fmt.Errorf("yielded %d %v early", v, e.due.Sub(now))
		}
		if far := m.grain.far(e.due) != 0; far && at.After(now) || !far && !at.Equal(m.grain.up(e.due, m.grain.unit)) {
			return fmt.Errorf("yielded %d with due %v, want %v", v, at, e.due)
		}
		if taken > 0 && at.Before(last) {
			return fmt.Errorf("yielded %v after %v", at, last)
		}
		if taken > 0 && m.stable && at.Equal(last) && v < lastValue {
			return fmt.Errorf("yielded %d after %d, which has the same due", v, lastValue)
		}
		last, lastValue = at, v
		m.forget(i)
		taken++
		return nil
	}
	if poll {
		for taken < most {
			next, ok := m.core.Poll(now)
			if !ok {
				break
			}
			if i, ok := m.place[next.Value]; ok && m.list[i].handle != next.Handle {
				return fmt.Errorf("polled %d with another handle", next.Value)
			}
			if err := take(next.Due, next.Value); err != nil {
				return err
			}
		}
	} else {
		for at, v := range m.core.Advance(now) {
			if err := take(at, v); err != nil {
				return err
			}
			if taken == most {
				break
			}
		}
	}
	if want := min(most, want); taken != want {
		return fmt.Errorf("advance by %v yielded %d, want %d", now.Sub(m.grain.base), taken, want)
	}
	if next, ok := m.core.Next(); ok && want < most && !next.After(now) {
		return fmt.Errorf("next is %v before an instant that nothing is due at", now.Sub(next))
	}
	return nil
}

// drain takes out up to most entries, due or not.
func (m *machine) drain(most int) error {
	want := min(most, len(m.list))
	last := time.Time{}
	for at, v := range m.core.Drain() {
		i, ok := m.place[v]
		if !ok {
			return fmt.Errorf("drained %d, which is not pending", v)
		}
		if want--; m.grain.far(m.list[i].due) == 0 && !at.Equal(m.grain.up(m.list[i].due, m.grain.unit)) {
			return fmt.Errorf("drained %d with due %v, want %v", v, at, m.list[i].due)
		}
		if !last.IsZero() && at.Before(last) {
			return fmt.Errorf("drained %v after %v", at, last)
		}
		last = at
		if m.forget(i); want == 0 {
			break
		}
	}
	if want > 0 {
		return fmt.Errorf("drained %d too few", want)
	}
	return nil
}

// lend borrows up to n due entries, and sees to it that each can be reset,
// cancelled or left.
func (m *machine) lend(n, mode int) error {
	lent := m.loan(m.now, n)
	borrowed := make([]int, 0, n)
	for _, t := range lent {
		at, ok := m.place[t.Value]
		if !ok || m.list[at].handle != t.Handle {
			return fmt.Errorf("lent %d, which is not pending", t.Value)
		}
		if e := m.list[at]; e.due.After(m.now) {
			return fmt.Errorf("lent %d %v early", t.Value, e.due.Sub(m.now))
		}
		m.forget(at)
		m.stale = m.stale[:len(m.stale)-1]
		borrowed = append(borrowed, t.Value)
	}
	if err := errors.Join(m.compare(), m.check()); err != nil {
		return fmt.Errorf("with %v lent: %w", borrowed, err)
	}
	for i, t := range lent {
		switch {
		case (mode>>i)&1 != 0: // reset
		case mode>>(i+1)&1 != 0:
			m.repaid(t.Handle)
			m.stale = append(m.stale, t.Handle)
			continue
		default:
			if v, ok := m.core.Cancel(t.Handle); !ok || v != t.Value {
				return fmt.Errorf("cancel of %d, which is lent: %d, %t", t.Value, v, ok)
			}
			m.stale = append(m.stale, t.Handle)
			continue
		}
		due := m.due()
		m.place[t.Value] = len(m.list)
		m.list = append(m.list, pending{due, t.Value, t.Handle})
		if !m.core.Reset(t.Handle, due) {
			return fmt.Errorf("reset of %d, which is lent", t.Value)
		}
	}
	return nil
}

// compare looks at all that a Core shows of itself.
func (m *machine) compare() error {
	if m.core.Len() != len(m.list) {
		return fmt.Errorf("len %d, want %d", m.core.Len(), len(m.list))
	}
	next, ok := m.core.Next()
	if ok != (len(m.list) > 0) {
		return fmt.Errorf("next: %t with %d pending", ok, len(m.list))
	}
	if ok {
		least := slices.MinFunc(m.list, func(a, b pending) int { return a.due.Compare(b.due) }).due
		if far := m.grain.far(least); far < 0 && next.After(m.now) || far > 0 && !m.hops && m.grain.far(next) <= 0 {
			return fmt.Errorf("next %v, the least due is %v", next, least)
		} else if far == 0 {
			want := m.grain.up(m.grain.up(least, m.grain.unit), m.grain.tick)
			if next.After(want) || !m.hops && !next.Equal(want) {
				return fmt.Errorf("next %v, want %v", next, want)
			}
		}
	}
	if n := len(m.list); n > 0 {
		e := m.list[m.values*17%n]
		due, ok := m.core.Due(e.handle)
		if !ok || m.grain.far(e.due) == 0 && !due.Equal(m.grain.up(e.due, m.grain.unit)) {
			return fmt.Errorf("due %v, %t; want %v", due, ok, e.due)
		}
		if p, ok := m.core.(interface {
			Peek() (timer.Timer[int], bool)
		}); ok {
			t, ok := p.Peek()
			if at, pending := m.place[t.Value]; !ok || !pending || m.list[at].handle != t.Handle {
				return fmt.Errorf("peeked at %v, %t, which is not pending", t, ok)
			}
			if due, _ := m.core.Due(t.Handle); !due.Equal(t.Due) || t.Due.After(next) {
				return fmt.Errorf("peeked at %v, which is due %v; next is %v", t, due, next)
			}
		}
	}
	handles := []timer.Handle{0, m.foreign}
	if len(m.stale) > 0 {
		handles = append(handles, m.stale[len(m.stale)-1], m.stale[m.values*31%len(m.stale)])
	}
	for _, h := range handles {
		if _, ok := m.core.Cancel(h); ok {
			return fmt.Errorf("cancelled by a stale handle")
		}
		if m.core.Reset(h, m.now) {
			return fmt.Errorf("reset by a stale handle")
		}
		if _, ok := m.core.Due(h); ok {
			return fmt.Errorf("a stale handle has a due")
		}
	}
	return nil
}

// step does what the tape says next.
func (m *machine) step() error {
	op := m.byte()
	n := len(m.list)
	if n > 1500 && op%16 < 7 { // enough
		op = 8
	}
	switch op % 16 {
	case 0, 1:
		return m.schedule(m.due())
	case 2, 3: // a few at once
		due, apart := m.due(), time.Duration(m.byte()%4)*m.grain.unit
		for range m.byte() % 32 {
			if err := m.schedule(due); err != nil {
				return err
			}
			due = due.Add(apart)
		}
	case 4, 5, 15: // come to a place, leave it, and one comes back
		due, apart, mode, other := m.due(), time.Duration(m.byte()%4)*m.grain.unit, m.byte(), m.due()
		for k := range 1 + m.byte()%16 {
			if err := m.schedule(due.Add(time.Duration(k) * apart)); err != nil {
				return err
			}
		}
		for at := len(m.list) - 1; at >= n; at-- {
			var err error
			switch mode % 4 {
			case 0:
				err = m.cancel(at)
			case 1, 2:
				err = m.reset(at, other)
			case 3:
				if at%4 > 0 {
					err = m.cancel(at)
				} else {
					err = m.reset(at, other)
				}
			}
			if err != nil {
				return err
			}
		}
		return m.schedule(due)
	case 6: // a crowd
		due, apart := m.due(), time.Duration(m.byte()%8)*m.grain.unit<<(m.byte()%24)
		for range 2 * m.byte() {
			if err := m.schedule(due); err != nil {
				return err
			}
			if due = due.Add(apart); m.grain.far(due) != 0 {
				due = m.now
			}
		}
	case 7:
		if n > 0 {
			return m.cancel(m.byte() * n / 256)
		}
	case 8:
		return m.several(m.cancel)
	case 9:
		if n > 0 {
			return m.reset(m.byte()*n/256, m.due())
		}
	case 10:
		due, apart := m.due(), time.Duration(m.byte()-128)*m.grain.unit
		return m.several(func(at int) error {
			due = due.Add(apart)
			return m.reset(at, due)
		})
	case 11:
		return m.advance(m.now.Add(m.span()), 1+m.byte(), op&16 != 0)
	case 13: // as far as something happens
		if next, ok := m.core.Next(); ok && next.Sub(m.now) < century {
			return m.advance(next, 1+m.byte(), op&16 != 0)
		}
	case 12:
		switch m.byte() % 4 {
		case 0:
			return m.advance(m.now.Add(-m.span()), 1+m.byte(), op&16 != 0)
		case 1:
			return m.drain(1 + m.byte())
		default:
			return m.lend(m.byte()%8, m.byte())
		}
	case 14: // dues and instants beyond what a Duration holds
		far := []time.Time{
			{}, epoch.AddDate(-900, 0, 0), epoch.AddDate(900, 0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC),
			time.Unix(-1<<60, 0), time.Unix(1<<55, 0),
		}[m.byte()%6]
		if op&16 != 0 && far.Before(epoch) {
			for _, v := range m.core.Advance(far) {
				if e := m.list[m.place[v]]; e.due.After(far) {
					return fmt.Errorf("yielded %d long before its due %v", v, e.due)
				}
				m.forget(m.place[v])
			}
			return nil
		}
		return m.schedule(far)
	}
	return nil
}

// run plays a tape.
func (m *machine) run(tape []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	m.foreign = timer.NewHeap[int](epoch).Schedule(epoch, 0)
	m.place, m.tape = make(map[int]int), tape
	for i := range m.anchors {
		m.anchors[i] = epoch.Add(time.Second << (3 * i))
	}
	m.now, m.latest = epoch, epoch
	for n := 0; len(m.tape) > 0; n++ {
		if m.before != nil {
			m.before()
		}
		if err := m.step(); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		if n%4 != 0 { // Next makes a Wheel tidy up; let it not always
			continue
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("step %d: inside: %w", n, err)
		}
		if err := m.compare(); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("step %d: inside, after Next: %w", n, err)
		}
	}
	// In the end everything comes out that has a due within reach.
	for i := 0; i < len(m.list); i++ {
		if m.grain.far(m.list[i].due) > 0 {
			if err := m.cancel(i); err != nil {
				return err
			}
			i--
		}
	}
	if err := m.advance(m.grain.base.Add(125*year), 1<<30, false); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	if err := m.compare(); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	return m.check()
}
