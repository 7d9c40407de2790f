// Package schedule pushes messages again and again, at the instants of a timetable.
//
// A schedule is one message of the queue Queue, with the schedule's name as its key and a
// record as its body. It is due when the schedule fires next. A Runner leases it, pushes the
// occurrences that are due, and replaces it by a record that says so, due at the next
// instant. The key of an occurrence is made of the schedule's name and the instant, and is
// remembered. So a runner that dies in between, and the next one that repeats its pushes,
// make one message an instant.
package schedule

import (
	"context"
	"hash/fnv"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Queue is the queue of the messages that are schedules.
const Queue = "tarry.schedules"

// The headers of an occurrence.
const (
	HeaderName    = "tarry-schedule" // the schedule's name
	HeaderInstant = "tarry-instant"  // the instant, in RFC 3339
)

// Limits of a schedule.
const (
	MaxBody    = 64 << 10 // bytes of the body
	MaxJitter  = 24 * time.Hour
	MaxCatchUp = 1000 // instants that CatchUpAll makes up for
	MaxNext    = 1000 // instants of one Next
)

// missedAfter is how late an instant may be before it is missed; see CatchUp.
const missedAfter = time.Minute

// Schedule describes messages that are pushed again and again.
type Schedule struct {
	// Name names the schedule in its store, by the rules of a queue's name.
	Name string

	// Spec says when: a cron expression of five fields, or of six that begin with the
	// seconds, a name such as @daily, or @every and a duration of at least 1 s.
	Spec string

	// Zone is the time zone of a cron expression, such as Europe/Berlin. Default UTC. A
	// time of day that a change of the clock skips fires right after the change, and one
	// that comes twice fires the first time; an expression for every hour goes by real time.
	Zone string

	// Jitter spreads schedules with the same instants: each fires later by a part of
	// Jitter that depends on its name, always the same. At most 24 h. Default: none.
	Jitter time.Duration

	// CatchUp says what happens to instants that were missed. Default CatchUpLast.
	CatchUp CatchUp

	// Start and End bound the instants, and may be instants themselves. With Start, @every
	// counts from it, else from 1970. Zero: unbounded.
	Start, End time.Time

	// Draft is what is pushed. The schedule sets its key, due time, conflict policy and two
	// headers, and remembers the key at least until the next instant and for a day. Its body
	// has at most 64 KiB.
	Draft engine.Message
}

// CatchUp says what happens to instants that were missed: that could not fire within a
// minute, because nothing ran the schedules or the queue was full.
type CatchUp uint8

// What happens to missed instants.
const (
	CatchUpLast CatchUp = iota // the last of them fires
	CatchUpSkip                // none fires
	CatchUpAll                 // all fire, at most the last 1000
)

var catchUpNames = [...]string{"last", "skip", "all"}

// String returns the name that the HTTP API uses.
func (c CatchUp) String() string {
	if int(c) >= len(catchUpNames) {
		return "unknown"
	}
	return catchUpNames[c]
}

// ParseCatchUp parses the form of CatchUp.String.
func ParseCatchUp(name string) (CatchUp, error) {
	for i, n := range catchUpNames {
		if n == name {
			return CatchUp(i), nil
		}
	}
	return 0, engine.Invalid("schedule", engine.Ref{}, "catch_up is last, skip or all, not %q", engine.Clip(name))
}

// State is the state of a schedule.
type State uint8

// The states of a schedule.
const (
	Active State = iota // fires at Info.Next
	Paused
	Ended // no instant is left
)

var stateNames = [...]string{"active", "paused", "ended"}

// String returns the name that the HTTP API uses.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Info is a stored schedule.
type Info struct {
	Schedule
	State    State
	Revision string    // changes whenever the schedule is set, paused or resumed
	Next     time.Time // when it fires next, Jitter included; zero: it does not
	Error    string    // why it could not fire, since then; "": it could
	Changed  time.Time // when it was last set, paused or resumed
	Runs     []Run     // the last ten, the newest first
}

// Run is an occurrence of a schedule: a message that was pushed.
type Run struct {
	Instant time.Time // without Jitter
	Pushed  time.Time
	Key     string // of the message, in the schedule's queue
	ID      engine.ID
	Manual  bool `json:",omitzero"` // triggered by hand
}

// Offset returns how much later than its instants the schedule fires; see Jitter.
func (s *Schedule) Offset() time.Duration {
	ms := uint64(s.Jitter.Milliseconds())
	if ms == 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(s.Name))
	return time.Duration(h.Sum64()%ms) * time.Millisecond
}

// timetable returns when the schedule fires, without Jitter.
func (s *Schedule) timetable() (*Timetable, error) {
	t, err := Parse(s.Spec, s.Zone, s.Start, s.End)
	if err != nil {
		return nil, s.invalid("%v", err)
	}
	return t, nil
}

// Validate returns an ErrInvalid that says what is wrong with the schedule, if anything.
func (s *Schedule) Validate() error {
	_, err := s.validate()
	return err
}

func (s *Schedule) validate() (*Timetable, error) {
	if s.Name == "" {
		return nil, engine.Invalid("schedule", engine.Ref{}, "the schedule has no name")
	}
	if err := engine.CheckQueue("schedule", s.Name); err != nil {
		return nil, s.invalid("the name %q is not allowed: a schedule is named by the rules of queues, 1 to %d of A-Za-z0-9-+/;.$_(), the first not a -", engine.Clip(s.Name), engine.MaxQueueBytes)
	}
	t, err := s.timetable()
	if err != nil {
		return nil, err
	}
	d := &s.Draft
	switch {
	case !written(s.Start) || !written(s.End):
		return nil, s.invalid("the start or the end is not in the years 0 to %d", engine.MaxYear)
	case s.Jitter < 0 || s.Jitter > MaxJitter:
		return nil, s.invalid("the jitter %s is not between 0 and %s", s.Jitter, MaxJitter)
	case int(s.CatchUp) >= len(catchUpNames):
		return nil, s.invalid("the catch-up %d is unknown", s.CatchUp)
	case d.Key != "" || !d.Due.IsZero() || d.OnConflict != engine.Reject || d.Token != "":
		return nil, s.invalid("the message has a key, a due time or a conflict policy; the schedule sets them")
	case len(d.Body) > MaxBody:
		return nil, s.invalid("the body has %d bytes; a schedule's has at most %d: push a reference to the data", len(d.Body), MaxBody)
	case slices.ContainsFunc(d.Headers, func(h engine.Header) bool { return h.Name == HeaderName || h.Name == HeaderInstant }):
		return nil, s.invalid("the headers %s and %s are set by the schedule", HeaderName, HeaderInstant)
	case d.Queue == Queue:
		return nil, s.invalid("the queue %s is for schedules themselves", Queue)
	}
	m := s.occurrence(time.Unix(0, 0), false, time.Time{})
	return t, m.Validate("schedule", len(d.Body))
}

// written reports whether RFC 3339 can tell a time.
func written(t time.Time) bool { return t.UTC().Year() >= 0 && t.UTC().Year() <= engine.MaxYear }

func (s *Schedule) invalid(format string, args ...any) error {
	return engine.Invalid(op(s.Name), engine.Ref{}, format, args...)
}

// op names a schedule in errors.
func op(name string) string { return "schedule " + engine.Clip(name) }

// ref names the message of a schedule.
func ref(name string) engine.Ref { return engine.Ref{Queue: Queue, Key: name} }

// Next returns the next n times after an instant at which the schedule fires, Jitter
// included. There may be fewer. n is 1 to 1000.
func (s *Schedule) Next(after time.Time, n int) ([]time.Time, error) {
	if n < 1 || n > MaxNext {
		return nil, s.invalid("%d times are asked for; allowed are 1 to %d", n, MaxNext)
	}
	t, err := s.timetable()
	if err != nil {
		return nil, err
	}
	var all []time.Time
	offset := s.Offset()
	for at := after.Add(-offset); len(all) < n; {
		if at = t.Next(at); at.IsZero() {
			break
		}
		all = append(all, at.Add(offset))
	}
	return all, nil
}

// Explain says in words when the schedule fires, and what the changes of the clock in the
// year after from do to it.
func (s *Schedule) Explain(from time.Time) ([]string, error) {
	t, err := s.timetable()
	if err != nil {
		return nil, err
	}
	return t.Explain(from), nil
}

// occurrence returns the message of an instant. next is the instant after it, if any.
func (s *Schedule) occurrence(instant time.Time, manual bool, next time.Time) engine.Message {
	m := s.Draft
	m.Key, m.OnConflict = runKey(s.Name, instant, manual), engine.Keep
	m.Headers = append(m.Headers[:len(m.Headers):len(m.Headers)],
		engine.Header{Name: HeaderName, Value: s.Name}, engine.Header{Name: HeaderInstant, Value: stamp(instant, manual)})
	if !manual {
		m.Due.At = instant.Add(s.Offset())
	}
	const day = 24 * time.Hour
	least := day
	if !next.IsZero() {
		least += next.Sub(instant)
	}
	m.Remember = min(max(m.Remember, least), engine.MaxRemember)
	return m
}

// runKey is the key of an occurrence.
func runKey(name string, instant time.Time, manual bool) string {
	return name + "@" + stamp(instant, manual)
}

// stamp formats an instant. Those triggered by hand have milliseconds, so they never have the
// key of another.
func stamp(instant time.Time, manual bool) string {
	if manual {
		return instant.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return instant.UTC().Format(time.RFC3339)
}

// Keeper keeps schedules: a Store, or a server.
type Keeper interface {
	Get(ctx context.Context, name string) (Info, error)
	Set(ctx context.Context, want Schedule, revision string) (Info, error)
	Remove(ctx context.Context, name, revision string) error
	Pause(ctx context.Context, name string) (Info, error)
	Resume(ctx context.Context, name string) (Info, error)
	Trigger(ctx context.Context, name string) (Run, error)
	List(ctx context.Context, after string, limit int) (page []Info, next string, err error)
}

// Server is an engine that has a Keeper.
type Server interface{ Schedules() Keeper }
