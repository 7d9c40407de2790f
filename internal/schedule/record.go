package schedule

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// maxRuns is how many runs a record keeps.
const maxRuns = 10

// record is a schedule as it is stored: the body of its message.
type record struct {
	Definition definition
	Revision   string
	Changed    time.Time // zero: at the message's due time
	After      time.Time // the instants up to here are done; zero: those up to the message's due time
	Paused     bool      `json:",omitzero"`
	Runs       []Run     `json:",omitempty"` // the newest last

	name      string
	timetable *Timetable
}

// definition is what a Schedule has but its name.
type definition struct {
	Spec, Zone string
	Jitter     time.Duration
	CatchUp    CatchUp
	Start, End time.Time

	Queue   string // of the occurrences, and what they are
	Content engine.Content
	Terms   engine.Terms
}

func define(s *Schedule) definition {
	return definition{
		Spec: s.Spec, Zone: s.Zone, Jitter: s.Jitter, CatchUp: s.CatchUp, Start: s.Start.UTC(), End: s.End.UTC(),
		Queue: s.Draft.Queue, Content: s.Draft.Content, Terms: s.Draft.Terms,
	}
}

// is reports whether two definitions are the same.
func (d definition) is(other definition) bool {
	a, errA := json.Marshal(d)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// set takes over a definition. Runs go on; a new timetable begins after now.
func (r *record) set(s *Schedule, t *Timetable, now time.Time) {
	d, old := define(s), &r.Definition
	if d.Spec != old.Spec || d.Zone != old.Zone || !d.Start.Equal(old.Start) || !d.End.Equal(old.End) {
		r.After = now
	}
	r.name, r.Definition, r.timetable = s.Name, d, t
	r.touch(now)
}

// touch makes another revision, that no schedule of this name has had before.
func (r *record) touch(now time.Time) {
	r.Revision, r.Changed = rand.Text()[:12], now.UTC()
}

// read decodes the message of a schedule.
func read(m *engine.Info) (*record, error) {
	r := &record{name: m.Key}
	if err := json.Unmarshal(m.Body, r); err != nil {
		return nil, fmt.Errorf("the message is not a schedule: %w", err)
	}
	if m.Key == "" {
		return nil, errors.New("the message is not a schedule: it has no key")
	}
	r.began(m.Created)
	s := r.schedule()
	t, err := s.timetable()
	r.timetable = t
	return r, err
}

// began tells a new record when it was stored, by the store's clock.
func (r *record) began(at time.Time) {
	if r.After.IsZero() {
		r.After = at
	}
	if r.Changed.IsZero() {
		r.Changed = at
	}
}

func (r *record) schedule() Schedule {
	d := &r.Definition
	return Schedule{
		Name: r.name, Spec: d.Spec, Zone: d.Zone, Jitter: d.Jitter, CatchUp: d.CatchUp, Start: d.Start, End: d.End,
		Draft: engine.Message{Queue: d.Queue, Content: d.Content, Terms: d.Terms},
	}
}

// next returns the next instant; zero: there is none.
func (r *record) next() time.Time {
	if r.Paused {
		return time.Time{}
	}
	return r.timetable.Next(r.After)
}

// parked is the due time of a schedule that is paused or has ended.
var parked = time.Date(engine.MaxYear, 12, 31, 0, 0, 0, 0, time.UTC)

// due returns when the message of the schedule is due.
func (r *record) due() time.Time {
	next := r.next()
	if next.IsZero() {
		return parked
	}
	s := r.schedule()
	return next.Add(s.Offset())
}

// message returns the message of the schedule. token: it replaces the one that has this
// lease; "": it is new.
func (r *record) message(token string) (engine.Message, error) {
	body, err := json.Marshal(r)
	m := engine.Message{
		Queue: Queue, Key: r.name, Due: engine.When{At: r.due()}, Token: token,
		Content: engine.Content{Body: body, ContentType: "application/json"},
		Terms: engine.Terms{
			MaxAttempts: engine.MaxMaxAttempts, TTR: leaseTTR, ExpireAfter: engine.Never, Remember: engine.Never, Isolate: new(false),
			Backoff: []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute},
		},
	}
	if token != "" {
		m.OnConflict = engine.Replace
	}
	return m, err
}

// pending returns the instants that are to fire at now, oldest first.
func (r *record) pending(now time.Time) []time.Time {
	if r.Paused {
		return nil
	}
	s := r.schedule()
	now = now.Add(-s.Offset())
	if r.Definition.CatchUp == CatchUpAll {
		return r.timetable.Newest(r.After, now, MaxCatchUp)
	}
	from := now.Add(-missedAfter - 1)
	if r.After.After(from) {
		from = r.After
	}
	onTime := r.timetable.Newest(from, now, MaxCatchUp)
	if len(onTime) == 0 && r.Definition.CatchUp == CatchUpLast {
		return r.timetable.Newest(r.After, now, 1)
	}
	return onTime
}

// advance marks the instants up to now as done.
func (r *record) advance(now time.Time) {
	s := r.schedule()
	if now = now.Add(-s.Offset()).UTC(); now.After(r.After) {
		r.After = now
	}
}

// occurrences returns the messages of instants.
func (r *record) occurrences(instants []time.Time) []engine.Message {
	s := r.schedule()
	all := make([]engine.Message, len(instants))
	for i, at := range instants {
		all[i] = s.occurrence(at, false, r.timetable.Next(at))
	}
	return all
}

// ran adds a run.
func (r *record) ran(instant time.Time, manual bool, id engine.ID, now time.Time) {
	r.Runs = append(r.Runs, Run{Instant: instant.UTC(), Pushed: now.UTC(), Key: runKey(r.name, instant, manual), ID: id, Manual: manual})
	r.Runs = r.Runs[max(0, len(r.Runs)-maxRuns):]
}

// info describes the schedule; m is its message.
func (r *record) info(m *engine.Info) Info {
	i := Info{Schedule: r.schedule(), Revision: r.Revision, Changed: r.Changed, Runs: slices.Clone(r.Runs)}
	slices.Reverse(i.Runs)
	switch {
	case r.Paused:
		i.State = Paused
	case r.next().IsZero():
		i.State = Ended
	default:
		i.Next = r.due()
	}
	if m.Attempt > 0 {
		i.Error = m.LastError
	}
	return i
}
