package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callSchedules = &call{
	id: "listSchedules", group: groupSchedule, does: "List the schedules",
	more:  "A token is told of the schedules whose queue it may read: a page may have fewer than were asked for, and none but a next.",
	query: wire.SchedulesQuery.Shape, answers: ok("A page of schedules.", wire.SchedulePage.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) listSchedules(x *exchange, r *http.Request) error {
	asked, err := wire.SchedulesQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	return s.answerPage(x, r, s.pages, true, func(b []byte, _ wire.Bodies) ([]byte, error) {
		all, next, err := s.c.Schedules(r.Context(), asked.After, asked.Limit)
		if err != nil {
			return nil, err
		}
		page := wire.Schedules{Next: next}
		for i := range all {
			if x.may(access.Read, all[i].Draft.Queue) == nil {
				page.Schedules = append(page.Schedules, wire.Schedule{Info: all[i]})
			}
		}
		return wire.SchedulePage.Append(b, &page), nil
	})
}

var callSchedule = &call{
	id: "getSchedule", group: groupSchedule, does: "Get a schedule, and what became of its last runs", exact: true,
	answers: ok("The schedule.", wire.StoredSchedule.Ref()), fails: scheduleFails,
}

// scheduleFails are the errors of calls about a schedule.
var scheduleFails = []error{engine.ErrNotFound, engine.ErrUnsupported}

func (s *Server) schedule(x *exchange, r *http.Request) error {
	told, err := s.allowed(x, r, access.Read)
	if err != nil {
		return err
	}
	all := wire.Schedule{Info: told, Outcomes: make([]wire.Run, len(told.Runs))}
	for i := range told.Runs {
		if all.Outcomes[i], err = outcome(r.Context(), s.c, told.Draft.Queue, &told.Runs[i]); err != nil {
			return err
		}
	}
	return respond(x, wire.SchedulesAs[wantBodies(r)], &all)
}

// allowed returns the schedule that the path names, if the token has one of the rights on its
// queue.
func (s *Server) allowed(x *exchange, r *http.Request, scope access.Scope) (tarry.ScheduleInfo, error) {
	told, err := s.c.Schedule(r.Context(), x.path.Schedule())
	if err == nil && x.may(scope, told.Draft.Queue) != nil {
		err = x.forbidden(scope, "the queue of this schedule") // which is not the token's to know
	}
	return told, err
}

// outcome returns a run with what became of its message, as far as that is known.
func outcome(ctx context.Context, c *tarry.Client, queue string, run *tarry.ScheduleRun) (wire.Run, error) {
	m, err := c.Get(ctx, tarry.ByKey(run.Key).Of(queue))
	if errors.Is(err, tarry.ErrNotFound) {
		err = nil
	}
	return wire.RunOf(*run, &m), err
}

var callSetSchedule = &call{
	id: "putSchedule", group: groupSchedule, does: "Store a schedule",
	more:    "The same schedule again changes nothing. It needs the scope on the queue of the message, and on that of the schedule before.",
	request: wire.SettingSchedule.Shape, answers: ok("The schedule, with its revision.", wire.StoredSchedule.Ref()),
	fails:   []error{engine.ErrStale, engine.ErrLeased, engine.ErrLimit, engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"spec":"0 2 * * 1-5","zone":"Europe/Berlin","message":{"queue":"report.nightly","body":{"kind":"sales"}},"revision":"0"}`),
}

func (s *Server) setSchedule(x *exchange, r *http.Request) error {
	in, err := s.read(x, r) // the input is not freed: the body is kept in it
	if err != nil {
		return err
	}
	var set wire.Schedule
	if wire.SettingSchedule.Read(&in.Reader, &set); in.Err() != nil {
		return in.Err()
	}
	set.Name = x.path.Schedule()
	x.note("queue", set.Draft.Queue)
	if err := x.may(access.Push, set.Draft.Queue); err != nil {
		return err
	}
	told, err := s.edit(x, r, access.Push, set.Revision, func(revision string) (tarry.ScheduleInfo, error) {
		return s.c.SetSchedule(r.Context(), set.Schedule, revision)
	})
	if err != nil {
		return err
	}
	x.note("revision", told.Revision)
	return respond(x, wire.StoredSchedule, &wire.Schedule{Info: told})
}

// edit changes the schedule that the path names, if the token has one of the rights on the
// queue that it has then. revision is the one that the caller expects; "": any.
func (s *Server) edit(x *exchange, r *http.Request, scope access.Scope, revision string, change func(revision string) (tarry.ScheduleInfo, error)) (tarry.ScheduleInfo, error) {
	if x.token == nil {
		return change(revision)
	}
	for {
		was, err := s.allowed(x, r, scope)
		switch {
		case errors.Is(err, tarry.ErrNotFound):
			was.Revision = "0"
		case err != nil:
			return was, err
		}
		told, err := change(cmp.Or(revision, was.Revision))
		if revision != "" || !errors.Is(err, tarry.ErrStale) {
			return told, err
		}
	}
}

var callRemoveSchedule = &call{
	id: "deleteSchedule", group: groupSchedule, does: "Remove a schedule", more: "What it has pushed stays.",
	query: wire.RemovingQuery.Shape, answers: []success{{http.StatusNoContent, "It is gone.", nil}}, fails: append(operateScheduleFails, engine.ErrStale),
}

func (s *Server) removeSchedule(x *exchange, r *http.Request) error {
	revision, err := wire.RemovingQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	_, err = s.edit(x, r, access.Push, revision, func(revision string) (tarry.ScheduleInfo, error) {
		return tarry.ScheduleInfo{}, s.c.RemoveSchedule(r.Context(), x.path.Schedule(), revision)
	})
	if err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// operateScheduleFails are the errors of calls that operate a schedule.
var operateScheduleFails = append(scheduleFails, engine.ErrLeased, engine.ErrNoSpace)

var (
	callPauseSchedule   = operating("pauseSchedule", "Pause a schedule until it is resumed", "", ok("It is paused.", wire.StoredSchedule.Ref()))
	callResumeSchedule  = operating("resumeSchedule", "Go on with a schedule that was paused", "It goes on with the first time after now.", ok("It goes on.", wire.StoredSchedule.Ref()))
	callTriggerSchedule = operating("triggerSchedule", "Push the message of a schedule now", "Beside its times; also while it is paused.",
		ok("The message that was pushed.", wire.ScheduleRun.Ref()), engine.ErrLimit)
)

// operating returns a call without fields that operates a schedule.
func operating(id, does, more string, answers []success, fails ...error) *call {
	return &call{
		id: id, group: groupSchedule, does: does, more: more, example: json.RawMessage(`{}`),
		request: wire.None.Shape, answers: answers, fails: slices.Concat(operateScheduleFails, fails),
	}
}

// operateSchedule returns the handler of a call without fields that operates a schedule and
// answers with an object.
func operateSchedule[T, W any](s *Server, do func(ctx context.Context, name string) (T, error), o *wire.Object[W], shown func(T) *W) handler {
	return func(x *exchange, r *http.Request) error {
		if _, err := decode(x, r, wire.None); err != nil {
			return err
		}
		told, err := s.allowed(x, r, access.Push|access.Operate)
		if err != nil {
			return err
		}
		x.note("queue", told.Draft.Queue)
		did, err := do(r.Context(), x.path.Schedule())
		if err != nil {
			return err
		}
		return respond(x, o, shown(did))
	}
}

func shownSchedule(i tarry.ScheduleInfo) *wire.Schedule { return &wire.Schedule{Info: i} }
func shownRun(r tarry.ScheduleRun) *wire.Run            { return &wire.Run{Run: r} }

var callScheduleNext = &call{
	id: "nextOfSchedule", group: groupSchedule, does: "Tell when a schedule fires next",
	query: wire.TimesQuery.Shape, answers: ok("The times.", wire.ScheduleTimes.Ref()), fails: scheduleFails,
}

func (s *Server) scheduleNext(x *exchange, r *http.Request) error {
	n, err := wire.TimesQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	told, err := s.allowed(x, r, access.Read)
	if err != nil {
		return err
	}
	after := time.Now()
	if told.Next.After(after) { // a new schedule leaves out an instant whose jitter has not passed
		after = told.Next.Add(-1)
	}
	return tellTimes(x, &told.Schedule, after, n)
}

var callPreviewSchedule = &call{
	id: "previewSchedule", group: groupSchedule, does: "Tell when a schedule would fire, or what is wrong with it", more: "Nothing is stored.",
	query: wire.TimesQuery.Shape, request: wire.PreviewingSchedule.Shape, answers: ok("The times.", wire.ScheduleTimes.Ref()),
	example: json.RawMessage(`{"spec":"30 2 * * *","zone":"Europe/Berlin"}`),
}

func (s *Server) previewSchedule(x *exchange, r *http.Request) error {
	n, err := wire.TimesQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var would wire.Schedule
	if wire.PreviewingSchedule.Read(&in.Reader, &would); in.Err() != nil {
		return in.Err()
	}
	would.Name, would.Draft.Queue = cmp.Or(would.Name, "preview"), cmp.Or(would.Draft.Queue, "preview")
	if err := would.Validate(); err != nil {
		return err
	}
	return tellTimes(x, &would.Schedule, time.Now(), n)
}

// tellTimes answers with the next n times of a schedule.
func tellTimes(x *exchange, of *tarry.Schedule, after time.Time, n int) error {
	next, err := of.Next(after, n)
	if err != nil {
		return err
	}
	words, err := of.Explain(after)
	if err != nil {
		return err
	}
	return respond(x, wire.ScheduleTimes, &wire.Timetable{Next: next, Explain: words})
}
