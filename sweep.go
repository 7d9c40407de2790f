package tarry

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Swept is the progress of RedriveWhere, DropWhere, CancelWhere or RescheduleWhere.
//
// These calls go through the messages of a queue in chunks of some hundreds. Each chosen
// message is changed once, provided that it is still in the state in which it was chosen.
// A message that arrives meanwhile may be changed or not. The calls do not chase new
// messages: they end each state at the message that was last in it when they reached that
// state (Newest: they start there). Progress functions are called after each chunk, on the
// caller's goroutine. When ctx ends or the engine fails, Swept is returned with the error
// and says what was done so far; it may miss changes of the last chunk. ErrUnsupported when
// the engine lacks lists, ranges of lists, or conditions on states.
type Swept struct {
	Seen    int64 // messages read
	Done    int64 // chosen, and changed
	Skipped int64 // chosen, but no longer there or in that state; Redrive: or a live message has its key
}

// RedriveWhere makes the dead messages that a filter chooses ready again, with attempt 0.
// See Swept.
func (c *Client) RedriveWhere(ctx context.Context, f Filter, progress ...func(Swept)) (Swept, error) {
	if err := f.check("redrive", Dead); err != nil {
		return Swept{}, err
	}
	s := &sweep{c: c, op: "redrive", f: f, progress: progress}
	if c.caps.Redrive && !c.changesByFilter() && f.choosesAll() {
		r, err := c.Redrive(ctx, f.Queue, nil, int(min(f.Limit, math.MaxInt)))
		return Swept{Done: r.Redriven, Skipped: r.Skipped}, err
	}
	return s.run(ctx, s.redrive, Dead)
}

// changesByFilter reports whether the engine supports them.
func (c *Client) changesByFilter() bool { return c.caps.List && c.caps.Range && c.caps.IfState }

// DropWhere removes the dead messages that a filter chooses. See Swept.
func (c *Client) DropWhere(ctx context.Context, f Filter, progress ...func(Swept)) (Swept, error) {
	s := &sweep{c: c, op: "drop", f: f, progress: progress}
	return s.run(ctx, s.cancel, Dead)
}

// CancelWhere cancels the scheduled and ready messages that a filter chooses. See Swept.
func (c *Client) CancelWhere(ctx context.Context, f Filter, progress ...func(Swept)) (Swept, error) {
	s := &sweep{c: c, op: "cancel", f: f, progress: progress}
	return s.run(ctx, s.cancel, Scheduled, Ready)
}

// RescheduleWhere gives the scheduled and ready messages that a filter chooses the same due
// time. Messages that already have it are left alone and not counted. See Swept.
func (c *Client) RescheduleWhere(ctx context.Context, f Filter, due Due, progress ...func(Swept)) (Swept, error) {
	s := &sweep{c: c, op: "reschedule", f: f, progress: progress, due: due}
	return s.run(ctx, s.reschedule, Scheduled, Ready)
}

// sweep is one call that changes messages by filter.
type sweep struct {
	Swept
	c        *Client
	op       string
	f        Filter
	progress []func(Swept)
	due      Due  // for RescheduleWhere
	dueFixed bool // due is an instant of the engine's clock, no longer a delay
}

// run goes through the messages in the given states. It calls change with the chosen
// messages of each chunk, which are all in one state. change counts them.
func (s *sweep) run(ctx context.Context, change func(context.Context, State, []Info) error, states ...State) (Swept, error) {
	able := s.c.able(s.c.changesByFilter(), s.op, s.f.Queue, "filters: these need ranges of lists and conditions on states")
	if err := cmp.Or(s.f.check(s.op, states...), able); err != nil {
		return s.Swept, err
	}
	for _, state := range s.f.States {
		q := s.f.query(state)
		if !q.Newest { // a newest-first sweep never meets new messages
			last, err := s.last(ctx, q)
			if err != nil {
				return s.Swept, err
			}
			if last.IsZero() {
				continue
			}
			q.To = last.Add(time.Millisecond)
			time.Sleep(time.Millisecond) // so that a message that dies again dies after q.To
		}
		for more := true; more; more = q.After != "" {
			p, err := s.c.ListPage(ctx, q)
			if err == nil {
				err = s.chunk(ctx, state, p.Messages, change)
			}
			if err != nil || s.limitReached() {
				return s.Swept, err
			}
			q.After = p.Next
		}
	}
	return s.Swept, nil
}

// last returns the time of the last message of a query; zero: there is none.
func (s *sweep) last(ctx context.Context, q ListQuery) (time.Time, error) {
	q.Newest, q.Limit, q.Body = true, 1, false
	for {
		p, err := s.c.ListPage(ctx, q)
		if err != nil {
			return time.Time{}, err
		}
		if len(p.Messages) > 0 {
			if q.State == Dead {
				return p.Messages[0].Died, nil
			}
			return p.Messages[0].Due, nil
		}
		if q.After = p.Next; p.Next == "" {
			return time.Time{}, nil
		}
	}
}

func (s *sweep) limitReached() bool { return s.f.Limit > 0 && s.Done >= s.f.Limit }

// chunk changes the chosen messages of a page.
func (s *sweep) chunk(ctx context.Context, state State, ms []Info, change func(context.Context, State, []Info) error) (err error) {
	s.Seen += int64(len(ms))
	chosen := ms[:0]
	for i := range ms {
		if s.f.Chooses(&ms[i]) && !s.alreadyDue(&ms[i]) {
			chosen = append(chosen, ms[i])
		}
	}
	for len(chosen) > 0 && !s.limitReached() && err == nil {
		n := len(chosen)
		if s.f.Limit > 0 {
			n = int(min(int64(n), s.f.Limit-s.Done))
		}
		if err = ctx.Err(); err == nil {
			err = change(ctx, state, chosen[:n])
		}
		chosen = chosen[n:]
	}
	for _, report := range s.progress {
		report(s.Swept)
	}
	return calls.Fail(s.op, Ref{Queue: s.f.Queue}, err)
}

// alreadyDue reports whether a message has the new due time: the sweep may meet a message
// again after moving it.
func (s *sweep) alreadyDue(m *Info) bool { return m.Due.Equal(s.due.when.At) }

func (s *sweep) redrive(ctx context.Context, _ State, ms []Info) error {
	ids := make([]ID, len(ms))
	for i := range ms {
		ids[i] = ms[i].ID
	}
	r, err := s.c.Redrive(ctx, s.f.Queue, ids, 0)
	s.Done += r.Redriven
	s.Skipped += r.Skipped
	return err
}

func (s *sweep) cancel(ctx context.Context, state State, ms []Info) error {
	refs := make([]Ref, len(ms))
	for i := range ms {
		refs[i] = Ref{Queue: s.f.Queue, ID: ms[i].ID, IfState: state}
	}
	return s.cancelRefs(ctx, refs)
}

func (s *sweep) cancelRefs(ctx context.Context, refs []Ref) (failure error) {
	got, err := s.c.CancelMany(ctx, refs)
	if err != nil {
		return err
	}
	var nowReady []Ref
	for _, r := range got {
		if later := r.Ref; errors.Is(r.Err, ErrStale) && s.toReady(&later) {
			nowReady = append(nowReady, later)
		} else if err := s.count(r.Err); err != nil {
			failure = err
		}
	}
	if len(nowReady) > 0 && failure == nil {
		return s.cancelRefs(ctx, nowReady)
	}
	return failure
}

// toReady changes the state in a reference from scheduled to ready, if the sweep takes ready
// messages too. A message that is no longer scheduled has most likely fallen due.
func (s *sweep) toReady(r *Ref) bool {
	if r.IfState != Scheduled || s.f.States[len(s.f.States)-1] != Ready {
		return false
	}
	r.IfState = Ready
	return true
}

// count counts one message as done, or as skipped if it was gone or in another state. It
// returns any other error.
func (s *sweep) count(err error) error {
	switch {
	case err == nil:
		s.Done++
	case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound): // a leased message is ErrStale here
		s.Skipped++
	default:
		return err
	}
	return nil
}

// sweepCalls is how many calls for single messages are under way at a time.
const sweepCalls = 16

// reschedule moves the first message alone: its due time by the engine's clock becomes that
// of all others.
func (s *sweep) reschedule(ctx context.Context, state State, ms []Info) error {
	for len(ms) > 0 && !s.dueFixed {
		info, err := s.move(ctx, state, &ms[0])
		if err == nil {
			s.dueFixed, s.due.when = true, engine.When{At: info.Due}
		}
		if err := s.count(err); err != nil {
			return err
		}
		ms = ms[1:]
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		counting sync.Mutex
		calls    sync.WaitGroup
		free     = make(chan struct{}, sweepCalls)
	)
	for i := 0; i < len(ms) && ctx.Err() == nil; i++ {
		free <- struct{}{}
		calls.Go(func() {
			_, err := s.move(ctx, state, &ms[i])
			counting.Lock()
			if err := s.count(err); err != nil {
				stop(err)
			}
			counting.Unlock()
			<-free
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

func (s *sweep) move(ctx context.Context, state State, m *Info) (Info, error) {
	ref := Ref{Queue: s.f.Queue, ID: m.ID, IfState: state}
	info, err := s.c.Reschedule(ctx, ref, s.due)
	if errors.Is(err, ErrStale) && s.toReady(&ref) {
		info, err = s.c.Reschedule(ctx, ref, s.due)
	}
	return info, err
}
