package tarrytest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/calls"
)

// store is a memory engine that records what is pushed to it, and knows when workers have
// nothing left to do.
type store struct {
	*memengine.Engine
	bubble   bool         // the clock is the bubble's
	clock    atomic.Int64 // else it is this, in Unix milliseconds
	watchers calls.Watchers

	// mu is held over the calls below. So a push is recorded before its message is gone, and
	// what is leased is in hand at once.
	mu      sync.Mutex
	changed *sync.Cond // on mu: there is less to do
	fails   error      // of pushes; nil: none
	records map[tarry.ID]record
	serving map[string]int       // workers that the Client runs, by queue
	asked   map[string]time.Time // queues that were asked for, and until when the rest is held back
	inHand  map[string]string    // queues of what workers have leased, by token
	leased  int                  // how much that was so far
	worked  Worked
}

// record is a message that was pushed and not cancelled.
type record struct {
	tarry.Info           // as it was pushed
	at         time.Time // of the push
}

func newStore(bubble bool, start time.Time) *store {
	s := &store{
		bubble:  bubble,
		records: make(map[tarry.ID]record),
		serving: make(map[string]int),
		asked:   make(map[string]time.Time),
		inHand:  make(map[string]string),
	}
	s.changed = sync.NewCond(&s.mu)
	s.clock.Store(start.UnixMilli())
	s.Engine = memengine.New(&memengine.Config{Now: s.now})
	s.Engine.Watch(func(queue string) { s.watchers.Hint(queue) })
	return s
}

func (s *store) now() time.Time {
	if s.bubble {
		return time.Now()
	}
	return time.UnixMilli(s.clock.Load()).UTC()
}

// Push pushes, and records what was pushed.
func (s *store) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return s.push(ctx, msgs, s.Engine.Push)
}

// PushAtomic is Push for all or none.
func (s *store) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return s.push(ctx, msgs, s.Engine.PushAtomic)
}

func (s *store) push(ctx context.Context, msgs []engine.Message, push func(context.Context, []engine.Message) ([]engine.PushResult, error)) ([]engine.PushResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return nil, s.fails
	}
	rs, err := push(ctx, msgs)
	for i, r := range rs {
		if err == nil && r.Err == nil && r.Outcome != engine.Kept {
			s.record(engine.Ref{Queue: msgs[i].Queue, ID: r.ID})
			s.settled(msgs[i].Token, engine.Ack, engine.Settled{}) // a schedule moves on by a push
		}
	}
	return rs, err
}

// Reschedule counts as a push of the message with its new due time.
func (s *store) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := s.Engine.Reschedule(ctx, ref, due)
	if err == nil {
		s.record(ref)
	}
	return info, err
}

// record records a message as it is now, unless it is a schedule.
func (s *store) record(ref engine.Ref) {
	info, err := s.Engine.Get(context.Background(), ref)
	if err == nil && ref.Queue != tarry.ScheduleQueue {
		s.records[info.ID] = record{info, s.now()}
	}
}

// Cancel cancels, and forgets what was cancelled.
func (s *store) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]tarry.ID, len(refs))
	for i, ref := range refs {
		info, _ := s.Engine.Get(ctx, ref) // if there is none, Cancel says so
		ids[i] = info.ID
	}
	errs, err := s.Engine.Cancel(ctx, refs)
	for i, failed := range errs {
		if failed == nil {
			delete(s.records, ids[i])
		}
	}
	return errs, err
}

// pushed returns what was pushed to the topics and not cancelled; without topics, to any queue.
func (s *store) pushed(topics ...interface{ Queue() string }) (found []record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[id]
		its := func(t interface{ Queue() string }) bool { return t.Queue() == r.Queue }
		if len(topics) == 0 || slices.ContainsFunc(topics, its) {
			info, _ := s.Engine.Get(context.Background(), engine.Ref{Queue: r.Queue, ID: id})
			r.State = info.State // Gone, if there is none
			found = append(found, r)
		}
	}
	return found
}

// serve notes that n more workers of some queues run.
func (s *store) serve(queues []string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range queues {
		s.serving[q] += n
	}
	s.changed.Broadcast()
}

// Watch calls fn with the hints of the engine, and those of ask.
func (s *store) Watch(fn func(queue string)) (stop func()) { return s.watchers.Watch(fn) }

// ask makes waiting workers and leases of a queue ask again. Called with s.mu held.
func (s *store) ask(queue string) {
	s.asked[queue] = time.Time{}
	s.watchers.Hint(queue)
}

// moveTo moves the clock forward.
func (s *store) moveTo(at time.Time) {
	if s.bubble {
		time.Sleep(at.Sub(s.now()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Store(max(s.clock.Load(), at.UnixMilli()))
	for q := range s.asked {
		s.ask(q)
	}
}

// Lease leases, and notes what workers have in hand.
func (s *store) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	g, err := s.Engine.Lease(ctx, wants)
	for i := range g.Queues {
		got := &g.Queues[i]
		s.asked[wants[i].Queue] = time.Time{}
		if got.Held {
			s.asked[wants[i].Queue] = got.NextDue
		}
		for _, l := range got.Messages {
			if l.Worker != "" {
				s.leased++
				s.inHand[l.Token] = l.Queue
			}
		}
		if !s.bubble {
			got.NextDue = time.Time{} // the clock stands: it is not known when that is
		}
	}
	return g, err
}

// Settle settles, and notes what workers no longer have in hand.
func (s *store) Settle(ctx context.Context, settlements []engine.Settlement) ([]engine.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.Engine.Settle(ctx, settlements)
	for i, done := range out {
		if do := settlements[i].Do; do != engine.Extend || done.Err != nil {
			s.settled(settlements[i].Token, do, done)
		}
	}
	return out, err
}

// settled notes that a lease has ended. Called with s.mu held.
func (s *store) settled(token string, do engine.Action, done engine.Settled) {
	queue, inHand := s.inHand[token]
	if !inHand {
		return
	}
	delete(s.inHand, token)
	s.ask(queue) // more may be leased where InFlight held it back
	s.changed.Broadcast()
	switch {
	case done.Err != nil || queue == tarry.ScheduleQueue: // it was lost, or is a schedule
	case done.State == engine.Dead:
		s.worked.Dead++
	case do == engine.Ack:
		s.worked.Acked++
	case do == engine.Retry:
		s.worked.Retried++
	case do == engine.Snooze:
		s.worked.Snoozed++
	}
}

// look reports whether workers that the Client runs have something to do, and when they may
// have next; zero: unknown. Called with s.mu held.
func (s *store) look() (busy bool, next time.Time) {
	for _, q := range s.inHand {
		busy = busy || s.serving[q] > 0
	}
	for q, n := range s.serving {
		if n == 0 {
			continue
		}
		info, _ := s.Engine.Queue(context.Background(), q) // nothing, once it is closed
		busy = busy || info.Ready > 0 && !info.Paused && s.asked[q].IsZero()
		for _, at := range []time.Time{info.NextDue, info.PausedUntil, s.asked[q]} {
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return busy, next
}
