package scheduletest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schedule"
)

// zones of the year's schedules, with changes of the clock and without.
var zones = []string{"UTC", "Asia/Kolkata", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut", "Africa/Casablanca"}

// The year's span; its schedules are made before its first instant.
var (
	yearFrom = time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	yearTo   = yearFrom.AddDate(1, 0, 0)
)

const (
	queue = "fired"
	// missed is how late an instant may be before it is missed, as schedule.CatchUp has it.
	missed = time.Minute
	// recovered is how long after its start a process may still have to do with what the one
	// before it had leased.
	recovered = 5 * time.Minute
)

// A year is what happens in it. Nothing in it is parallel: a Runner and what takes its messages
// are one goroutine, which sleeps from event to event.
type year struct {
	t       *testing.T
	r       *rand.Rand
	store   Store
	process *process
	plans   map[string]*plan
	ids     map[string]engine.ID // of the messages that came, by key
	outages []outage
	started time.Time // of the process
	killAt  time.Time // zero: it ends at a step
	armAt   time.Time // zero: it is set at which step
}

// plan is a schedule, with what it has to do and what it did.
type plan struct {
	schedule.Schedule
	want  []time.Time
	fired map[time.Time]int
}

// outage is a time without a process. It is long enough that instants are missed, or none is.
type outage struct {
	from, to time.Time
	long     bool
	busy     bool // something may have been under way
}

// RunYear lets schedules fire for a year, and processes die at random, also between a push and
// the step that marks it as done. Each instant of the oracle must have made one message, due at
// the instant, or be one that a schedule does not make up for.
func RunYear(t *testing.T, open func(t *testing.T) Store) {
	r := Rand(t)
	plans := somePlans(t, r)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(yearFrom.Add(-time.Minute / 2)))
		y := &year{t: t, r: r, store: open(t), plans: plans, ids: make(map[string]engine.ID)}
		y.live()
		y.check()
	})
}

// somePlans are two expressions in each zone, one of them of every hour, that fire near a change
// of the clock, and two intervals.
func somePlans(t *testing.T, r *rand.Rand) map[string]*plan {
	plans := make(map[string]*plan)
	add := func(spec, zone string, want []time.Time) {
		name := fmt.Sprint("s", len(plans))
		p := &plan{want: want, fired: make(map[time.Time]int), Schedule: schedule.Schedule{
			Name: name, Spec: spec, Zone: zone, CatchUp: schedule.CatchUp(r.IntN(3)),
			Draft: engine.Message{Queue: queue, Terms: engine.Terms{MaxAttempts: 50, TTR: 10 * time.Second, ExpireAfter: engine.Never}},
		}}
		if p.CatchUp == schedule.CatchUpAll && r.IntN(2) == 0 {
			p.Jitter = time.Duration(1+r.IntN(1000)) * time.Second
		}
		plans[name] = p
	}
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWalk(zone, yearFrom, yearTo, time.Minute)
		near := changes(zone)
		for _, everyHour := range []bool{false, true} {
			for {
				e := Some(r, false)
				fires := func(w *Walk) bool { return len(w.Instants(e)) > 0 }
				if e.everyHour != everyHour || len(near) > 0 && !slices.ContainsFunc(near, fires) {
					continue
				}
				if want := w.Instants(e); len(want) >= 50 && len(want) <= 2000 && !dense(want) {
					add(e.Text, name, want)
					break
				}
			}
		}
	}
	for _, every := range []time.Duration{90 * time.Minute, 7 * time.Hour} {
		var want []time.Time
		for at := time.Unix(0, 0).UTC(); at.Before(yearTo); at = at.Add(every) {
			if !at.Before(yearFrom) {
				want = append(want, at)
			}
		}
		add("@every "+every.String(), "", want)
	}
	return plans
}

// dense reports whether the longest outage may miss more instants than are made up for.
func dense(want []time.Time) bool {
	for i := schedule.MaxCatchUp; i < len(want); i++ {
		if want[i].Sub(want[i-schedule.MaxCatchUp]) < 4*24*time.Hour {
			return true
		}
	}
	return false
}

// changes are walks through the hours in which the clock changes, and the next.
func changes(zone *time.Location) []*Walk {
	var walks []*Walk
	offset := func(at time.Time) int { _, o := at.In(zone).Zone(); return o }
	for at := yearFrom; at.Before(yearTo); at = at.Add(time.Hour) {
		if to := at.Add(time.Hour); offset(at) != offset(to) {
			walks = append(walks, NewWalk(zone, at, to.Add(time.Hour), time.Minute))
		}
	}
	return walks
}

// live is one process after the other until the year is over.
func (y *year) live() {
	for y.process == nil || y.store.Killed() {
		e, err := y.store.Open()
		if err != nil {
			y.t.Fatal(err)
		}
		y.process, y.started = &process{e, y.store}, time.Now()
		s := schedule.Store{Engine: y.process, Push: y.process.Push}
		if y.outages == nil {
			for _, p := range y.plans {
				if _, err := s.Set(y.t.Context(), p.Schedule, ""); err != nil {
					y.t.Fatal(err)
				}
			}
		}
		y.choose()
		r := schedule.Runner{Store: s, Lease: y.lease, Trouble: func(name string, err error) {
			if !y.store.Killed() {
				y.t.Errorf("%s: %s: %v", time.Now(), name, err)
			}
		}}
		r.Run(y.t.Context())
		if y.store.Killed() {
			y.pause()
		}
	}
	if err := y.process.Engine.Close(); err != nil {
		y.t.Error(err)
	}
}

// choose decides how the process ends: when nothing is under way, or at a step. That the
// next does not end before what the last one left behind is made up for keeps apart what is
// missed and what is not.
func (y *year) choose() {
	y.killAt, y.armAt = time.Time{}, time.Time{}
	switch {
	case yearTo.Sub(y.started) < 8*24*time.Hour: // it lives on
	case y.r.IntN(3) == 0:
		minutes := 10 + y.r.IntN(4*24*60)
		y.killAt = y.started.Truncate(time.Minute).Add(time.Duration(minutes)*time.Minute + 30*time.Second)
	case len(y.outages) > 0 && y.outages[len(y.outages)-1].long:
		y.store.KillIn(1 + y.r.IntN(300)) // maybe while it makes up for what was missed
	default:
		y.armAt = y.started.Add(recovered)
	}
}

// pause is the time between two processes.
func (y *year) pause() {
	o := outage{from: time.Now(), busy: y.killAt.IsZero()}
	rest := time.Duration(y.r.IntN(20)) * time.Second
	if o.long = !o.busy || o.from.Sub(y.started) > recovered && y.r.IntN(5) == 0; o.long {
		end := o.from.Add(3*time.Minute + time.Duration(y.r.IntN(72*60))*time.Minute)
		rest = end.Truncate(time.Minute).Add(20 * time.Second).Sub(o.from)
	}
	time.Sleep(rest)
	o.to = time.Now()
	y.outages = append(y.outages, o)
}

// lease waits for schedules that are due. Until then it takes what they have pushed.
func (y *year) lease(ctx context.Context) ([]engine.Lease, error) {
	for {
		got, err := y.process.Lease(ctx, []engine.Want{{Queue: schedule.Queue, Max: 100}, {Queue: queue, Max: 100}})
		if err != nil {
			return nil, err
		}
		if err := y.take(ctx, got.Queues[1].Messages); err != nil {
			return nil, err
		}
		if due := got.Queues[0].Messages; len(due) > 0 {
			return due, nil
		}
		if len(got.Queues[1].Messages) > 0 {
			continue
		}
		wake := yearTo.Add(time.Hour)
		for _, at := range []time.Time{got.Queues[0].NextDue, got.Queues[1].NextDue, y.killAt, y.armAt} {
			if !at.IsZero() && at.Before(wake) {
				wake = at
			}
		}
		time.Sleep(time.Until(wake))
		switch now := time.Now(); {
		case !now.Before(yearTo.Add(time.Hour)):
			return nil, engine.ErrClosed
		case now.Equal(y.killAt):
			y.store.Kill()
		case now.Equal(y.armAt):
			y.armAt = time.Time{}
			y.store.KillIn(1 + y.r.IntN(600))
		}
	}
}

// take takes messages that schedules have pushed.
func (y *year) take(ctx context.Context, msgs []engine.Lease) error {
	var acks []engine.Settlement
	for i := range msgs {
		m := &msgs[i]
		name, stamp, _ := strings.Cut(m.Key, "@")
		instant, err := time.Parse(time.RFC3339, stamp)
		p := y.plans[name]
		if err != nil || p == nil {
			y.t.Fatalf("a message has the key %q", m.Key)
		}
		if want := instant.Add(p.Offset()); !m.Due.Equal(want) || time.Now().Before(want) {
			y.t.Errorf("%s came at %s, due at %s", m.Key, time.Now(), m.Due)
		}
		if id, came := y.ids[m.Key]; !came {
			p.fired[instant]++
		} else if id != m.ID {
			p.fired[instant]++ // another message, not the same again
		}
		y.ids[m.Key] = m.ID
		acks = append(acks, engine.Settlement{Token: m.Token, Do: engine.Ack})
	}
	if acks == nil {
		return nil
	}
	_, err := y.process.Settle(ctx, acks)
	return err
}

// check compares what fired with what had to.
func (y *year) check() {
	messages, long := 0, 0
	for _, p := range y.plans {
		for i, at := range p.want {
			fired := p.fired[at]
			delete(p.fired, at)
			messages += fired
			must, may := y.expect(p, i)
			if fired > 1 || fired == 1 && !may || fired == 0 && must {
				y.t.Errorf("%s %q in %s, catch-up %s: %d messages of %s", p.Name, p.Spec, p.Zone, p.CatchUp, fired, at)
			}
		}
		for at := range p.fired {
			if at.Before(yearTo) {
				y.t.Errorf("%s %q in %s: a message of %s", p.Name, p.Spec, p.Zone, at)
			}
		}
	}
	for _, o := range y.outages {
		if o.long {
			long++
		}
	}
	y.t.Logf("%d messages of %d schedules, %d deaths, %d long outages", messages, len(y.plans), len(y.outages), long)
	if messages < 1000 || len(y.outages)-long < 10 || long < 10 {
		y.t.Error("this is too little to prove anything")
	}
}

// expect says whether an instant must make a message, and whether it may.
func (y *year) expect(p *plan, i int) (must, may bool) {
	due := p.want[i].Add(p.Offset())
	at, _ := slices.BinarySearchFunc(y.outages, due, func(o outage, due time.Time) int {
		return cmp.Or(o.to.Compare(due), -1) // the first that ends after it
	})
	if p.CatchUp == schedule.CatchUpAll || at == len(y.outages) {
		return true, true
	}
	o := y.outages[at]
	underWay := o.busy && !due.After(o.from) && due.After(o.from.Add(-missed))
	switch {
	case !o.long || due.Before(o.from) && !underWay || !due.Before(o.to.Add(-missed)):
		return true, true
	case p.CatchUp == schedule.CatchUpSkip:
		return false, underWay
	}
	next := i + 1 // the last that was missed fires, if none is on time
	last := next == len(p.want) || p.want[next].Add(p.Offset()).After(o.to)
	return last, last || underWay
}
