package tarry

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/schedule"
)

// Types of schedules.
type (
	// Schedule describes messages that are pushed again and again; see NewSchedule and
	// Client.SetSchedule.
	Schedule = schedule.Schedule
	// CatchUp says what happens to instants that were missed: CatchUpLast, CatchUpSkip or
	// CatchUpAll.
	CatchUp = schedule.CatchUp
	// ScheduleInfo is a stored schedule.
	ScheduleInfo = schedule.Info
	// ScheduleState is the state of a schedule: ScheduleActive, SchedulePaused or
	// ScheduleEnded.
	ScheduleState = schedule.State
	// ScheduleRun is a message that a schedule has pushed.
	ScheduleRun = schedule.Run
)

// What happens to instants that could not fire within a minute, because nothing ran the
// schedules or the queue was full.
const (
	CatchUpLast = schedule.CatchUpLast // the last of them fires
	CatchUpSkip = schedule.CatchUpSkip // none fires
	CatchUpAll  = schedule.CatchUpAll  // all fire, at most the last 1000
)

// The states of a schedule.
const (
	ScheduleActive = schedule.Active
	SchedulePaused = schedule.Paused
	ScheduleEnded  = schedule.Ended // no instant is left
)

// ScheduleQueue is the queue whose messages are the schedules of a store, each with its name
// as key. It is not for other messages.
const ScheduleQueue = schedule.Queue

// The headers of a message that a schedule has pushed.
const (
	ScheduleHeader = schedule.HeaderName    // the schedule's name
	InstantHeader  = schedule.HeaderInstant // the instant, in RFC 3339
)

// ParseCatchUp parses the form of CatchUp.String: last, skip or all.
func ParseCatchUp(name string) (CatchUp, error) { return schedule.ParseCatchUp(name) }

// NewSchedule returns a schedule that pushes v to the topic at the instants of spec, such as
// "0 2 * * *" or "@every 90s"; see Schedule for spec and the other fields. Client.SetSchedule
// stores it.
//
//	s, err := tarry.NewSchedule("report.nightly", "0 2 * * *", Reports, Report{}, tarry.MaxAttempts(3))
//	s.Zone = "Europe/Berlin"
//	_, err = c.SetSchedule(ctx, s, "")
func NewSchedule[T any](name, spec string, t *Topic[T], v T, opts ...PushOption) (Schedule, error) {
	d, err := t.Draft(v, opts...)
	return Schedule{Name: name, Spec: spec, Draft: d}, err
}

// schedules returns the schedules of the client's store or server.
func (c *Client) schedules(ctx context.Context) (schedule.Keeper, error) {
	if err := c.begin(ctx, "schedule", ""); err != nil {
		return nil, err
	}
	if s, ok := c.Engine().(schedule.Server); ok {
		return s.Schedules(), nil
	}
	s := c.scheduleStore()
	return s, s.Check()
}

// onSchedule calls do with the schedules of the client's store or server.
func onSchedule[T any](ctx context.Context, c *Client, name string, do func(schedule.Keeper, context.Context, string) (T, error)) (T, error) {
	s, err := c.schedules(ctx)
	if err != nil {
		return *new(T), err
	}
	return do(s, ctx, name)
}

func (c *Client) scheduleStore() *schedule.Store {
	return &schedule.Store{Engine: c.eng, Push: c.pushOccurrences}
}

// pushOccurrences is PushMany for package schedule.
func (c *Client) pushOccurrences(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	got, err := c.PushMany(ctx, msgs)
	if err != nil {
		return nil, err
	}
	out := make([]engine.PushResult, len(got))
	for i, p := range got {
		out[i] = engine.PushResult{Outcome: p.Outcome, ID: p.ID, Due: p.Due, State: p.State, Err: p.Err}
	}
	return out, nil
}

// SetSchedule stores a schedule under its name. A schedule that is stored already and the
// same is left as it is. revision is the ScheduleInfo.Revision of the schedule that this one
// replaces, "0" when there must be none, or "" to replace whatever there is. A schedule fires
// while a Worker with WorkerConfig.Schedules, or a tarry server, runs on the store: one
// message for each instant, however many run. A new timetable begins after now.
//
// Errors: ErrInvalid, also for a spec that never fires or fires more than once a second;
// ErrStale when the schedule is at another revision; ErrLeased when it is being changed by
// others all the time; ErrUnsupported on an engine without keys that are remembered.
func (c *Client) SetSchedule(ctx context.Context, s Schedule, revision string) (ScheduleInfo, error) {
	store, err := c.schedules(ctx)
	if err != nil {
		return ScheduleInfo{}, err
	}
	draft := &s.Draft
	err = cmp.Or(s.Validate(), draft.Validate("schedule", c.maxBody), c.caps.CheckTerms("schedule", Ref{Queue: draft.Queue}, &draft.Terms))
	if err != nil {
		return ScheduleInfo{}, err
	}
	return store.Set(ctx, s, revision)
}

// Schedule returns a schedule. ErrNotFound when there is none of that name.
func (c *Client) Schedule(ctx context.Context, name string) (ScheduleInfo, error) {
	return onSchedule(ctx, c, name, schedule.Keeper.Get)
}

// Schedules returns a page of the schedules: those that are overdue, those that fire now,
// those to come by their next time, and last those that are paused or have ended. after is
// the next of the page before, "" for the first; next is "" at the end. limit is at most
// 1000; 0 means 100. One that fires meanwhile may be on two pages. A server leaves out bodies
// and runs.
func (c *Client) Schedules(ctx context.Context, after string, limit int) (page []ScheduleInfo, next string, err error) {
	s, err := c.schedules(ctx)
	if err != nil {
		return nil, "", err
	}
	limit = cmp.Or(limit, defaultPage)
	if err := engine.CheckLimit("schedule", ScheduleQueue, limit); err != nil {
		return nil, "", err
	}
	page, next, err = s.List(ctx, after, limit)
	return page, next, calls.Fail("schedule", Ref{}, err)
}

// AllSchedules yields the schedules in the order of Schedules. It ends after the first error.
func (c *Client) AllSchedules(ctx context.Context) iter.Seq2[ScheduleInfo, error] {
	return pages(func(after string) ([]ScheduleInfo, string, error) { return c.Schedules(ctx, after, engine.MaxPage) })
}

// RemoveSchedule removes a schedule. The messages that it has pushed stay. revision is as
// for SetSchedule. Errors: ErrNotFound, ErrStale, ErrLeased.
func (c *Client) RemoveSchedule(ctx context.Context, name, revision string) error {
	s, err := c.schedules(ctx)
	if err != nil {
		return err
	}
	return s.Remove(ctx, name, revision)
}

// PauseSchedule stops a schedule until ResumeSchedule. A second pause changes nothing.
func (c *Client) PauseSchedule(ctx context.Context, name string) (ScheduleInfo, error) {
	return onSchedule(ctx, c, name, schedule.Keeper.Pause)
}

// ResumeSchedule lets a paused schedule go on with the first instant after now.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (ScheduleInfo, error) {
	return onSchedule(ctx, c, name, schedule.Keeper.Resume)
}

// TriggerSchedule pushes the message of a schedule now, beside those of its instants, even
// while it is paused. Each call pushes one.
func (c *Client) TriggerSchedule(ctx context.Context, name string) (ScheduleRun, error) {
	return onSchedule(ctx, c, name, schedule.Keeper.Trigger)
}

// troubleSchedule is why a schedule cannot fire.
var troubleSchedule = notify.Trouble{Text: "a schedule cannot fire", Level: slog.LevelWarn}

// startSchedules runs the schedules of the store until ctx ends or stop is called, which
// waits.
func (w *Worker) startSchedules(ctx context.Context) (stop func(), err error) {
	s := w.c.scheduleStore()
	if err := cmp.Or(w.c.begin(ctx, "schedule", ""), s.Check()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := schedule.Runner{Store: *s, Lease: w.leaseSchedules, Trouble: func(name string, err error) {
		w.c.trouble.Note(troubleSchedule, ScheduleQueue, "schedule", name, "error", err)
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

// scheduleWait is how long one call waits for schedules that are due.
const scheduleWait = time.Minute

// leaseSchedules waits for schedules that are due.
func (w *Worker) leaseSchedules(ctx context.Context) ([]Lease, error) {
	got, err := w.c.Lease(ctx, LeaseRequest{Queues: []string{ScheduleQueue}, Max: MaxLease, Wait: scheduleWait, LeaseOptions: LeaseOptions{Worker: w.cfg.Name}})
	return got.Messages, err
}
