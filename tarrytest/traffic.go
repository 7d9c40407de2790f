package tarrytest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// traffic is what was leased from a queue. Guarded by store.mu.
type traffic struct {
	tally
	hints int       // so far
	calls int       // of Lease, under way
	quiet bool      // nothing can be leased, by the last answer and the hints since
	next  time.Time // when quiet: when something may be due; zero: unknown
}

// tally counts leases and settlements.
type tally struct {
	leased int
	Worked
}

// since returns what was handled after the tally was as in before.
func (t tally) since(before tally) Worked {
	return Worked{
		t.Acked - before.Acked, t.Retried - before.Retried,
		t.Snoozed - before.Snoozed, t.Dead - before.Dead,
	}
}

// of returns the traffic of a queue. Called with s.mu held.
func (s *store) of(queue string) *traffic {
	t := s.traffic[queue]
	if t == nil {
		t = new(traffic)
		s.traffic[queue] = t
	}
	return t
}

// wake wakes those who wait for a change. Called without s.mu held.
func (s *store) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change()
}

func (s *store) change() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Watch calls fn with the hints of the engine, and when the clock has moved.
func (s *store) Watch(fn func(queue string)) (stop func()) {
	stopEngine, stopAsking := s.Engine.Watch(fn), s.watchers.Watch(fn)
	return func() {
		stopEngine()
		stopAsking()
	}
}

// hint notes that a queue may have something to lease.
func (s *store) hint(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(queue)
	t.hints++
	t.quiet = false
	s.change()
}

// ask makes all who wait for messages of the queues ask for them.
func (s *store) ask(queues []string) {
	for _, q := range queues {
		s.hint(q)
		s.watchers.Hint(q)
	}
}

// known returns the queues that something is known of.
func (s *store) known() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.traffic))
}

// Lease leases, and notes what workers have in hand.
func (s *store) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	hints := make([]int, len(wants))
	s.mu.Lock()
	for i, w := range wants {
		t := s.of(w.Queue)
		hints[i] = t.hints
		t.calls++
	}
	s.mu.Unlock()
	g, err := s.Engine.Lease(ctx, wants)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.change()
	for i, w := range wants {
		t := s.of(w.Queue)
		if t.calls--; err != nil {
			continue
		}
		got := &g.Queues[i]
		t.quiet = !got.More && got.Err == nil && t.hints == hints[i]
		t.next = got.NextDue
		for j := range got.Messages {
			if l := got.Messages[j]; l.Worker != "" {
				t.leased++
				s.inHand[l.Token] = &l
			}
		}
		if !s.clock.bubble {
			got.NextDue = time.Time{} // the clock stands: it is not known when that is
		}
	}
	return g, err
}

// Settle settles, and notes what workers no longer have in hand.
func (s *store) Settle(ctx context.Context, settlements []engine.Settlement) ([]engine.Settled, error) {
	s.recording.Lock()
	defer s.recording.Unlock()
	out, err := s.Engine.Settle(ctx, settlements)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, done := range out {
		x := &settlements[i]
		l := s.inHand[x.Token]
		if l == nil || x.Do == engine.Extend && done.Err == nil {
			continue
		}
		delete(s.inHand, x.Token)
		if done.Err == nil {
			s.of(l.Queue).count(x.Do, done.State)
		}
	}
	s.change()
	return out, err
}

func (t *tally) count(do engine.Action, state engine.State) {
	switch {
	case state == engine.Dead:
		t.Dead++
	case do == engine.Ack:
		t.Acked++
	case do == engine.Retry:
		t.Retried++
	case do == engine.Snooze:
		t.Snoozed++
	}
}

// busy returns what is still to be done in the queues, and a channel that is closed when that
// may have changed; "": nothing.
func (s *store) busy(queues []string) (what string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.inHand {
		if slices.Contains(queues, l.Queue) {
			what = fmt.Sprintf("a handler of %s has not returned, for message %s with the key %q", l.Queue, l.ID, l.Key)
		}
	}
	for _, q := range queues {
		if t := s.of(q); what == "" && (!t.quiet || t.calls > 0) {
			what = "no worker on this store has asked for what is due in " + q
		}
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return what, s.changed
}

// sum returns the tally of all queues together.
func (s *store) sum(queues []string) (sum tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range queues {
		t := s.of(q)
		sum.leased += t.leased
		sum.Acked += t.Acked
		sum.Retried += t.Retried
		sum.Snoozed += t.Snoozed
		sum.Dead += t.Dead
	}
	return sum
}

// leased returns how many messages of the workers' queues were leased so far.
func (s *store) leased(rs []*running) (n int) {
	for _, r := range rs {
		n += s.sum(r.queues).leased
	}
	return n
}

// next returns when something may be due for workers that have nothing to do; zero: unknown.
func (s *store) next(rs []*running) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rs {
		for _, q := range r.queues {
			if t := s.of(q).next; !t.IsZero() && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}
