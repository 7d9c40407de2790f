package wire

import (
	"cmp"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schedule"
)

// Schedule is a schedule in a request or an answer, and what became of its runs.
type Schedule struct {
	schedule.Info
	Outcomes []Run
}

// Run is a run of a schedule, and what became of its message.
type Run struct {
	schedule.Run
	State   engine.State // Gone: not known any more
	Ending  engine.Ending
	Attempt uint32
	Started time.Time
	Late    time.Duration // how long after its due time it started
	Ended   time.Time     // finished or died
	Ran     time.Duration // from Started to Ended
	Error   string
}

// Stored returns the schedule without the outcomes of its runs.
func (s *Schedule) Stored() schedule.Info {
	i := s.Info
	for _, r := range s.Outcomes {
		i.Runs = append(i.Runs, r.Run)
	}
	return i
}

// RunOf returns a run with what its message tells of it. Another message tells nothing.
func RunOf(run schedule.Run, m *engine.Info) Run {
	r := Run{Run: run}
	if m.ID != run.ID {
		return r
	}
	r.State, r.Ending, r.Attempt, r.Started, r.Error = m.State, m.Ending, m.Attempt, m.Started, m.LastError
	if r.Ended = m.Ended; m.State == engine.Dead {
		r.Ended = m.Died
	}
	if !m.Started.IsZero() {
		r.Late, r.Ran = max(0, m.Started.Sub(m.Due)), max(0, r.Ended.Sub(m.Started))
	}
	return r
}

var (
	// SettingSchedule is a request to store a schedule.
	SettingSchedule = requestObject("Schedule", "A schedule, all of it: what is absent is unset.", append(definition[:len(definition):len(definition)],
		required("message", asScheduled, scheduled, "what is pushed"),
		optional("revision", asRevision, func(s *Schedule) *string { return &s.Revision }, "store it only if it has not changed since this was read; 0: if there is none yet; without it: overwrite"))...)
	// PreviewingSchedule is a request to tell when a schedule would fire.
	PreviewingSchedule = requestObject("SchedulePreview", "A schedule that need not be stored. With a message all of it is checked.", append(definition[:len(definition):len(definition)],
		optional("name", asText.described(isQueue), scheduleName, "what its jitter depends on"),
		optional("message", asScheduled, scheduled, "what is pushed"))...)

	definition = []member[Schedule]{
		required("spec", asText.described(textSchema(1, 0).With("examples", []string{"0 2 * * 1-5", "@every 90s"})), func(s *Schedule) *string { return &s.Spec }, "when: a cron expression of five fields, or six that begin with the seconds; a name such as @daily; or @every and a duration of at least 1s"),
		optional("zone", asText.described(isText.With("examples", []string{"Europe/Berlin"})), func(s *Schedule) *string { return &s.Zone }, "of the cron expression; default: UTC"),
		optional("jitter", asJitter, func(s *Schedule) *time.Duration { return &s.Jitter }, "fires later by a part of this, always the same, that depends on the name; at most 24h; default: 0s"),
		optional("catch_up", named(schedule.CatchUpLast, schedule.CatchUpAll), func(s *Schedule) *schedule.CatchUp { return &s.CatchUp }, "which of the times fire that were missed by more than a minute; default: last"),
		optional("start", asExact, func(s *Schedule) *time.Time { return &s.Start }, "does not fire before; @every counts from here"),
		optional("end", asExact, func(s *Schedule) *time.Time { return &s.End }, "does not fire after"),
	}
	asJitter = scalar(isDuration, func(r *Reader, name string) time.Duration { return r.within(name, 0, schedule.MaxJitter) }, AppendDuration)
)

func scheduleName(s *Schedule) *string      { return &s.Name }
func scheduled(s *Schedule) *engine.Message { return &s.Draft }

// The fields of a message that a schedule pushes.
var mayBeScheduled = []string{"body", "body_base64", "content_type", "headers", "priority", "max_attempts", "ttr", "backoff", "expire_after", "remember", "isolate"}

var scheduledMessage = PushedMessage.only("ScheduleMessage", "A message that a schedule pushes. The schedule sets its key and due time, and remembers the key until the next time and a day.", []string{"queue"}, mayBeScheduled)

// asScheduled reads any message to push, to say which fields the schedule sets itself.
var asScheduled = kind[engine.Message]{
	is: scheduledMessage.Ref(),
	read: func(r *Reader, _ string, m *engine.Message) {
		got := PushedMessage.read(r, "message", m)
		for field, name := range PushedMessage.names {
			if got.Has(field) && !slices.Contains(scheduledMessage.names, name) {
				r.Wrong("%s: is set by the schedule; leave it out of the message", name)
			}
		}
		if !got.Has(FieldQueue) {
			r.Wrong("queue: is missing")
		}
	},
	append: scheduledMessage.Append,
	zero:   func(m *engine.Message) bool { return m.Queue == "" },
}

var storedMessage = newObject("StoredScheduleMessage", "A message that a schedule pushes. In lists without its body.", false, scheduledMessage.members)

// StoredSchedule is the answer with a schedule.
var StoredSchedule = answerObject("StoredSchedule", "A schedule.", storedFields(asStored(AsJSON))...)

// SchedulesAs are the objects that write schedules, with bodies in each form.
var SchedulesAs = [...]*Object[Schedule]{
	AsJSON: StoredSchedule, Exactly: answerObject("", "", storedFields(asStored(Exactly))...), NoBodies: answerObject("", "", storedFields(asStored(NoBodies))...),
}

func storedFields(message kind[engine.Message]) []member[Schedule] {
	all := []member[Schedule]{required("name", asText.described(isQueue), scheduleName, "")}
	all = append(all, definition...)
	return append(all,
		required("message", message, scheduled, "what is pushed"),
		required("state", named(schedule.Active, schedule.Ended), func(s *Schedule) *schedule.State { return &s.State }, "ended: no time is left"),
		required("revision", asText, func(s *Schedule) *string { return &s.Revision }, "changes whenever it is stored, paused or resumed"),
		required("changed", asInstant, func(s *Schedule) *time.Time { return &s.Changed }, "when that was last"),
		required("next", asInstant, func(s *Schedule) *time.Time { return &s.Next }, "when it fires next, jitter included; null: it does not"),
		optional("error", asText, func(s *Schedule) *string { return &s.Error }, "why it could not fire; it is tried again"),
		optional("runs", list(ScheduleRun.kind("run"), 0), func(s *Schedule) *[]Run { return &s.Outcomes }, "the last ten, the newest first; not in lists"))
}

// asStored is the kind of stored messages, with bodies in this form.
func asStored(how Bodies) kind[engine.Message] {
	o := storedMessage.only("", "", []string{"queue"}, storedMessage.without("queue", "body_base64"))
	for i := range o.members {
		switch m := &o.members[i]; m.name {
		case "headers":
			m.append = func(b []byte, v *engine.Message) []byte { return appendHeaders(b, v.Headers, how == Exactly) }
		case "body":
			m.label, m.omit = ",", func(v *engine.Message) bool { return how == NoBodies || len(v.Body) == 0 }
			m.append = func(b []byte, v *engine.Message) []byte { return appendBody(b, &v.Content, how) }
		}
	}
	read := func(r *Reader, _ string, m *engine.Message) { storedMessage.read(r, "message", m) }
	return kind[engine.Message]{is: storedMessage.Ref(), read: read, append: o.Append}
}

// ScheduleRun is a run, and what became of its message.
var ScheduleRun = answerObject("ScheduleRun", "A message that a schedule has pushed, and what became of it.",
	required("instant", asInstant, func(r *Run) *time.Time { return &r.Instant }, "for which time, without jitter"),
	required("pushed", asInstant, func(r *Run) *time.Time { return &r.Pushed }, "when"),
	required("key", asText, func(r *Run) *string { return &r.Key }, "of the message"),
	required("id", asID, func(r *Run) *engine.ID { return &r.ID }, "of the message"),
	required("manual", asFlag, func(r *Run) *bool { return &r.Manual }, "it was triggered"),
	optional("state", asState, func(r *Run) *engine.State { return &r.State }, "of the message; missing: not known any more"),
	optional("ending", asEnding, func(r *Run) *engine.Ending { return &r.Ending }, "how it went, if it is finished"),
	optional("attempt", count32, func(r *Run) *uint32 { return &r.Attempt }, "how often it was leased"),
	optional("started", asInstant, func(r *Run) *time.Time { return &r.Started }, "when its lease began, if it is leased or was acked"),
	optional("late", asDuration, func(r *Run) *time.Duration { return &r.Late }, "how long after its due time that was").
		unless(func(r *Run) bool { return r.Started.IsZero() }),
	optional("ended", asInstant, func(r *Run) *time.Time { return &r.Ended }, "when it was finished or died"),
	optional("ran", asDuration, func(r *Run) *time.Duration { return &r.Ran }, "from started to ended").
		unless(func(r *Run) bool { return r.Started.IsZero() || r.Ended.IsZero() }),
	optional("error", asText, func(r *Run) *string { return &r.Error }, "why its last attempt failed"))

// Schedules are a page of schedules.
type Schedules struct {
	Schedules []Schedule
	Next      string
}

// SchedulePage is a page of schedules, without bodies and runs.
var SchedulePage = answerObject("SchedulePage", "A page of schedules.",
	required("schedules", list(listedSchedule, 0), func(p *Schedules) *[]Schedule { return &p.Schedules }, "those overdue first, then by when they fire next; paused and ended ones last"),
	required("next", asText, func(p *Schedules) *string { return &p.Next }, "give it as after for the next page; empty: this is the last"))

var listedSchedule = kind[Schedule]{StoredSchedule.Ref(), StoredSchedule.kind("schedule").read, SchedulesAs[NoBodies].Append, nil}

// Timetable is when a schedule fires, and that in words.
type Timetable struct {
	Next    []time.Time
	Explain []string
}

// ScheduleTimes is the answer that tells when a schedule fires.
var ScheduleTimes = answerObject("ScheduleTimes", "When a schedule fires.",
	required("next", list(asTime, 0), func(t *Timetable) *[]time.Time { return &t.Next }, "the next times, jitter included; fewer than asked for: it ends"),
	required("explain", list(asText, 0), func(t *Timetable) *[]string { return &t.Explain }, "in words, for people; and what the changes of the clock in the next year do"))

// The queries about schedules.
var (
	SchedulesQuery = pageQuery("schedules at most")
	TimesQuery     = requestObject("", "",
		optional("n", whole[int](1, schedule.MaxNext).described(wholeSchema(1, schedule.MaxNext).With("default", defaultTimes)), itself, "how many of the next times"),
	).checked(func(_ *Reader, _ Fields, n *int) { *n = cmp.Or(*n, defaultTimes) })
	RemovingQuery = requestObject("", "", optional("revision", asText.described(textSchema(1, 0)), itself, "only if it has not changed since this was read"))
)

const defaultTimes = 10
