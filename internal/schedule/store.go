package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
)

// Store keeps schedules in an engine.
type Store struct {
	Engine engine.Engine
	Push   func(context.Context, []engine.Message) ([]engine.PushResult, error) // pushes occurrences
}

// editTTR is how long an edit holds a schedule; editWait is how long it waits for another
// edit, or for a runner, to let go of it.
const (
	editTTR  = 10 * time.Second
	editWait = 5 * time.Second
)

// Check returns ErrUnsupported unless the engine can keep schedules.
func (s *Store) Check() error {
	c := s.Engine.Capabilities()
	_, claims := s.Engine.(engine.Claimer)
	_, lists := s.Engine.(engine.Lister)
	if claims && c.Claim && lists && c.List && c.Get && c.Cancel && c.Remember {
		return nil
	}
	return &engine.Error{Op: "schedule", Err: engine.ErrUnsupported, Hint: "schedules need an engine with keys that are remembered; " + c.Name + " has none"}
}

// Get returns a schedule.
func (s *Store) Get(ctx context.Context, name string) (Info, error) {
	m, err := s.Engine.Get(ctx, ref(name))
	if err == nil && !m.State.Live() { // it died or was listed as finished
		err = engine.ErrNotFound
	}
	if err != nil {
		return Info{}, about(name, err)
	}
	r, err := read(&m)
	if err != nil {
		return Info{}, about(name, err)
	}
	return r.info(&m), nil
}

// Set stores a schedule, and changes nothing if it is there already. revision is that of the
// schedule which it replaces, "0" if there must be none, or "" for whatever is there.
func (s *Store) Set(ctx context.Context, want Schedule, revision string) (Info, error) {
	t, err := want.validate()
	if err != nil {
		return Info{}, err
	}
	for {
		have, err := s.Get(ctx, want.Name)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			if revision != "" && revision != "0" {
				return Info{}, stale(want.Name, "it does not exist")
			}
			got, err := s.create(ctx, &want, t)
			if errors.Is(err, engine.ErrExists) {
				continue
			}
			return got, about(want.Name, err)
		case err != nil:
			return Info{}, err
		case revision != "" && revision != have.Revision:
			return Info{}, staleAt(want.Name, have.Revision)
		case define(&have.Schedule).is(define(&want)):
			return have, nil
		}
		got, err := s.edit(ctx, want.Name, revision, func(r *record, now time.Time) error {
			r.set(&want, t, now)
			return nil
		})
		if revision == "" && errors.Is(err, engine.ErrNotFound) {
			continue // removed meanwhile
		}
		return got, err
	}
}

// create stores a new schedule. It is due at once, so that its due time tells the store's
// clock; a runner then moves it to its first instant.
func (s *Store) create(ctx context.Context, want *Schedule, t *Timetable) (Info, error) {
	r := new(record)
	r.set(want, t, time.Time{})
	m, err := r.message("")
	if err != nil {
		return Info{}, err
	}
	m.Due = engine.When{}
	got, err := s.push(ctx, m)
	if err != nil {
		return Info{}, err
	}
	r.began(got.Due)
	return r.info(&engine.Info{}), nil
}

func (s *Store) push(ctx context.Context, m engine.Message) (engine.PushResult, error) {
	got, err := s.Engine.Push(ctx, []engine.Message{m})
	if err != nil {
		return engine.PushResult{}, err
	}
	return got[0], got[0].Err
}

// Remove removes a schedule. revision is as for Set. What it has pushed stays.
func (s *Store) Remove(ctx context.Context, name, revision string) error {
	return s.held(ctx, name, revision, func(l *engine.Lease, _ *record) error {
		got, err := s.Engine.Settle(ctx, []engine.Settlement{{Token: l.Token, Do: engine.Ack}})
		if err != nil {
			return err
		}
		return got[0].Err
	})
}

// Pause stops a schedule until Resume.
func (s *Store) Pause(ctx context.Context, name string) (Info, error) {
	return s.edit(ctx, name, "", func(r *record, now time.Time) error {
		if !r.Paused {
			r.Paused = true
			r.touch(now)
		}
		return nil
	})
}

// Resume lets a paused schedule go on with its next instant.
func (s *Store) Resume(ctx context.Context, name string) (Info, error) {
	return s.edit(ctx, name, "", func(r *record, now time.Time) error {
		if r.Paused {
			r.Paused, r.After = false, now
			r.touch(now)
		}
		return nil
	})
}

// triggerTries is how many instants Trigger tries whose keys others have: those of a schedule
// of this name that was removed.
const triggerTries = 100

// Trigger pushes an occurrence now, beside those of the timetable, even while the schedule
// is paused.
func (s *Store) Trigger(ctx context.Context, name string) (Run, error) {
	var run Run
	_, err := s.edit(ctx, name, "", func(r *record, now time.Time) error {
		if n := len(r.Runs); n > 0 && !r.Runs[n-1].Instant.Before(now) {
			now = r.Runs[n-1].Instant.Add(time.Millisecond) // a key of its own
		}
		def := r.schedule()
		for range triggerTries {
			got, err := s.Push(ctx, []engine.Message{def.occurrence(now, true, time.Time{})})
			if err == nil {
				err = got[0].Err
			}
			if err != nil {
				return err
			}
			if got[0].Outcome != engine.Kept {
				r.ran(now, true, got[0].ID, now)
				run = r.Runs[len(r.Runs)-1]
				return nil
			}
			now = now.Add(time.Millisecond)
		}
		return engine.ErrExists
	})
	return run, err
}

// edit changes a schedule, without a change between its reading and its writing. If change
// fails, the schedule stays as it was.
func (s *Store) edit(ctx context.Context, name, revision string, change func(r *record, now time.Time) error) (info Info, err error) {
	err = s.held(ctx, name, revision, func(l *engine.Lease, r *record) error {
		before := *r
		failed := change(r, l.Started)
		if failed != nil {
			*r = before
		}
		info = r.info(&engine.Info{})
		return errors.Join(failed, s.replace(ctx, l, r))
	})
	return info, err
}

// held calls do with a schedule that it has leased, and that has this revision.
func (s *Store) held(ctx context.Context, name, revision string, do func(l *engine.Lease, r *record) error) error {
	l, err := s.claim(ctx, name)
	if err != nil {
		return about(name, err)
	}
	r, err := read(&l.Info)
	switch {
	case err != nil:
		_, _ = s.Engine.Settle(ctx, engine.Releases([]engine.Lease{l}))
		return about(name, err)
	case revision != "" && revision != r.Revision:
		_ = s.replace(ctx, &l, r) // else its lease lapses
		return staleAt(name, r.Revision)
	}
	return about(name, do(&l, r))
}

// replace ends the lease of a schedule and stores the record in its place.
func (s *Store) replace(ctx context.Context, l *engine.Lease, r *record) error {
	m, err := r.message(l.Token)
	if err == nil {
		_, err = s.push(ctx, m)
	}
	return err
}

// claim leases a schedule, whether it is due or not. It waits while another holds it.
func (s *Store) claim(ctx context.Context, name string) (l engine.Lease, err error) {
	claimer, _ := s.Engine.(engine.Claimer)
	for pause, left := 5*time.Millisecond, editWait; ; left -= pause {
		for _, state := range []engine.State{engine.Scheduled, engine.Ready} {
			at := ref(name)
			at.IfState = state
			if l, err = claimer.Claim(ctx, at, engine.Want{Queue: Queue, Max: 1, TTR: editTTR}); !errors.Is(err, engine.ErrStale) {
				break
			}
		}
		busy := errors.Is(err, engine.ErrStale) || errors.Is(err, engine.ErrLeased)
		if !busy || left <= 0 || !duration.Sleep(ctx, pause) {
			break
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
	if errors.Is(err, engine.ErrStale) || errors.Is(err, engine.ErrLeased) {
		err = &engine.Error{Op: op(name), Err: engine.ErrLeased, Hint: "it fires or is edited at this moment: try again"}
	}
	return l, err
}

// List returns a page of the schedules: those that are overdue, those that fire now, those
// to come by their next time, those paused or ended. after is the next of the page before.
func (s *Store) List(ctx context.Context, after string, limit int) (page []Info, next string, err error) {
	page, next, err = s.listByState(ctx, after, limit)
	slices.SortStableFunc(page, func(a, b Info) int { // a new one, due at once, is where it belongs
		return orParked(a.Next).Compare(orParked(b.Next))
	})
	return page, next, err
}

// orParked returns a next time, or parked if there is none.
func orParked(next time.Time) time.Time {
	if next.IsZero() {
		return parked
	}
	return next
}

// listByState lists schedules by the states of their messages.
func (s *Store) listByState(ctx context.Context, after string, limit int) (page []Info, next string, err error) {
	states := []engine.State{engine.Ready, engine.Leased, engine.Scheduled}
	at := 0
	if after != "" {
		state, cursor, ok := strings.Cut(after, "-")
		for at < len(states) && states[at].String() != state {
			at++
		}
		if !ok || at == len(states) {
			return nil, "", engine.Invalid("schedule", engine.Ref{}, "the cursor %q is not one of a list of schedules", engine.Clip(after))
		}
		after = cursor
	}
	lister, _ := s.Engine.(engine.Lister)
	for ; at < len(states); at, after = at+1, "" {
		for {
			got, err := lister.List(ctx, engine.ListQuery{Queue: Queue, State: states[at], After: after, Limit: limit - len(page), Body: true})
			if err != nil {
				return nil, "", err
			}
			for i := range got.Messages {
				if r, err := read(&got.Messages[i]); err == nil { // else it is no schedule
					page = append(page, r.info(&got.Messages[i]))
				}
			}
			if after = got.Next; after == "" {
				break
			}
			if len(page) == limit {
				return page, states[at].String() + "-" + after, nil
			}
		}
		if len(page) == limit && at+1 < len(states) {
			return page, states[at+1].String() + "-", nil
		}
	}
	return page, "", nil
}

func stale(name, why string) error {
	return &engine.Error{Op: op(name), Err: engine.ErrStale, Hint: why}
}

func staleAt(name, revision string) error {
	return stale(name, "it is at revision "+revision+": read it again")
}

func about(name string, err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return &engine.Error{Op: op(name), Err: engine.ErrNotFound, Hint: "there is no such schedule"}
	}
	return calls.Fail(op(name), engine.Ref{}, err)
}
