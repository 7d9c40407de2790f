package schedule

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// leaseTTR is how long a runner that has died keeps a schedule from others.
const leaseTTR = 30 * time.Second

// Runner fires the schedules of a store. Any number of runners may share a store.
type Runner struct {
	Store
	Lease   func(context.Context) ([]engine.Lease, error) // waits for schedules that are due
	Trouble func(name string, err error)                  // is told why a schedule could not fire; "": why none could
}

// Run fires schedules until ctx ends or the client is closed.
func (r *Runner) Run(ctx context.Context) {
	r.recheck(ctx)
	for ctx.Err() == nil {
		due, err := r.Lease(ctx)
		if len(due) > 0 {
			err = r.fire(ctx, due)
		}
		switch {
		case errors.Is(err, engine.ErrClosed) || ctx.Err() != nil:
			return
		case err != nil:
			r.Trouble("", err)
			duration.Sleep(ctx, time.Second)
		}
	}
}

// recheck moves schedules that are due at another time by this program's rules of time zones
// than by those of the program that stored them.
func (r *Runner) recheck(ctx context.Context) {
	lister, _ := r.Engine.(engine.Lister)
	for after := ""; ; {
		page, err := lister.List(ctx, engine.ListQuery{Queue: Queue, State: engine.Scheduled, After: after, Limit: engine.MaxPage, Body: true})
		if err != nil {
			return // the next start does it, and so does the next instant
		}
		for i := range page.Messages {
			m := &page.Messages[i]
			if rec, err := read(m); err == nil && m.Attempt == 0 && !rec.due().Equal(m.Due) {
				_, _ = r.edit(ctx, rec.name, rec.Revision, func(*record, time.Time) error { return nil })
			}
		}
		if after = page.Next; after == "" {
			return
		}
	}
}

// firing is a schedule that fires.
type firing struct {
	*record
	lease    *engine.Lease
	instants []time.Time
	err      error
}

// fireFor is how long firing goes on with schedules that have much to do before it looks for
// others that are due.
const fireFor = time.Second

// fire fires schedules that are due: those last that have much to do. What fails is tried
// again. The end of ctx does not interrupt it.
func (r *Runner) fire(ctx context.Context, due []engine.Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTTR)
	defer cancel()
	fired := make([]firing, len(due))
	for i := range due {
		fired[i] = begin(&due[i])
	}
	slices.SortStableFunc(fired, func(a, b firing) int {
		return cmp.Or(cmp.Compare(min(a.lease.Attempt, 2), min(b.lease.Attempt, 2)), cmp.Compare(len(a.instants), len(b.instants)))
	})
	var err error
	for began := time.Now(); err == nil && len(fired) > 0 && time.Since(began) < fireFor; {
		n := together(fired)
		err = r.fireSome(ctx, fired[:n])
		fired = fired[n:]
	}
	return errors.Join(err, r.release(ctx, fired))
}

// together returns how many of the first schedules fire together. Those that are tried again
// look up what they have pushed, which the others do not wait for.
func together(fired []firing) int {
	again, instants := fired[0].lease.Attempt > 1, 0
	for n := range fired {
		if instants >= pushMost || fired[n].lease.Attempt > 1 != again {
			return n
		}
		instants += len(fired[n].instants)
	}
	return len(fired)
}

// release lets schedules be leased again at once.
func (r *Runner) release(ctx context.Context, fired []firing) error {
	if len(fired) == 0 {
		return nil
	}
	back := make([]engine.Lease, len(fired))
	for i := range fired {
		back[i] = *fired[i].lease
	}
	_, err := r.Engine.Settle(ctx, engine.Releases(back))
	return err
}

// fireSome pushes the occurrences of schedules, and then moves them on.
func (r *Runner) fireSome(ctx context.Context, fired []firing) error {
	for i := range fired {
		if f := &fired[i]; f.err == nil && f.lease.Attempt > 1 {
			f.instants, f.err = r.withoutDead(ctx, f.record, f.instants)
		}
	}
	err := r.pushAll(ctx, fired)
	if err == nil {
		err = r.moveOn(ctx, fired)
	}
	return errors.Join(err, r.retry(ctx, fired, err))
}

// begin finds out what a schedule has to push.
func begin(l *engine.Lease) firing {
	rec, err := read(&l.Info)
	f := firing{record: rec, lease: l, err: err}
	if err == nil {
		f.instants = rec.pending(l.Started)
		rec.advance(l.Started)
	}
	return f
}

// withoutDead removes the instants whose messages are dead already. A runner that died after
// it had pushed them may have left them behind, and the key of a dead message is free.
func (r *Runner) withoutDead(ctx context.Context, rec *record, instants []time.Time) (left []time.Time, err error) {
	for _, at := range instants {
		m, err := r.Engine.Get(ctx, engine.Ref{Queue: rec.Definition.Queue, Key: runKey(rec.name, at, false)})
		switch {
		case err != nil && !errors.Is(err, engine.ErrNotFound):
			return nil, err
		case err != nil || m.State != engine.Dead:
			left = append(left, at)
		}
	}
	return left, nil
}

// The most messages and bytes of bodies of one push.
const (
	pushMost  = 1000
	pushBytes = 4 << 20
)

// pushAll pushes the occurrences of schedules. Its error is of the call as a whole.
func (r *Runner) pushAll(ctx context.Context, fired []firing) error {
	type run struct {
		f  *firing
		at time.Time
	}
	var runs []run
	var msgs []engine.Message
	size := 0
	push := func() error {
		if len(msgs) == 0 {
			return nil
		}
		got, err := r.Push(ctx, msgs)
		if err != nil {
			return err
		}
		for i, p := range got {
			f := runs[i].f
			if f.err = cmp.Or(f.err, p.Err); p.Err == nil {
				f.ran(runs[i].at, false, p.ID, f.lease.Started)
			}
		}
		runs, msgs, size = nil, nil, 0
		return nil
	}
	for i := range fired {
		f := &fired[i]
		if f.err != nil {
			continue
		}
		for k, m := range f.occurrences(f.instants) {
			if len(msgs) == pushMost || size+len(m.Body) > pushBytes {
				if err := push(); err != nil {
					return err
				}
			}
			runs, msgs, size = append(runs, run{f, f.instants[k]}), append(msgs, m), size+len(m.Body)
		}
	}
	return push()
}

// moveOn replaces schedules that have fired by what they are from now on.
func (r *Runner) moveOn(ctx context.Context, fired []firing) error {
	var moved []*firing
	var msgs []engine.Message
	for i := range fired {
		f := &fired[i]
		if f.err != nil {
			continue
		}
		m, err := f.message(f.lease.Token)
		if err != nil {
			f.err = err
			continue
		}
		moved, msgs = append(moved, f), append(msgs, m)
	}
	if len(msgs) == 0 {
		return nil
	}
	got, err := r.Engine.Push(ctx, msgs)
	for i := range got {
		if err := got[i].Err; !errors.Is(err, engine.ErrLeaseLost) { // it was removed, or lapsed and is another's
			moved[i].err = err
		}
	}
	return err
}

// retry lets schedules that could not fire come again: all if a whole call failed.
func (r *Runner) retry(ctx context.Context, fired []firing, whole error) error {
	var again []engine.Settlement
	for i := range fired {
		f := &fired[i]
		err := cmp.Or(f.err, whole)
		if err == nil {
			continue
		}
		r.Trouble(f.lease.Key, err)
		again = append(again, engine.Settlement{Token: f.lease.Token, Do: engine.Retry, Reason: err.Error()})
	}
	if len(again) == 0 {
		return nil
	}
	_, err := r.Engine.Settle(ctx, again)
	return err
}
