package tarrytest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/calls"
)

// store is a memory engine that records what is pushed to it (here) and what is leased from
// it (traffic.go).
type store struct {
	*memengine.Engine
	clock    *clock
	watchers calls.Watchers // get the hints of ask; the engine's own are separate

	// recording is held over calls that change a record, so that a message is not gone before
	// its push is recorded.
	recording sync.Mutex

	mu      sync.Mutex
	fails   error
	records []*record // in order
	byID    map[engine.ID]*record
	traffic map[string]*traffic
	inHand  map[string]*engine.Lease // by token
	changed chan struct{}            // closed at the next change; nil: nobody waits
}

// record is what is known of a pushed message.
type record struct {
	engine.Info           // as it was pushed
	at          time.Time // of the push
	cancelled   bool
}

func newStore(now *clock) *store {
	s := &store{
		Engine:  memengine.New(&memengine.Config{Now: now.now}),
		clock:   now,
		byID:    make(map[engine.ID]*record),
		traffic: make(map[string]*traffic),
		inHand:  make(map[string]*engine.Lease),
	}
	s.Engine.Watch(s.hint)
	return s
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
	s.recording.Lock()
	defer s.recording.Unlock()
	if err := s.failure(); err != nil {
		return nil, err
	}
	at := s.clock.now()
	rs, err := push(ctx, msgs)
	if err != nil {
		return rs, err
	}
	for i, r := range rs {
		if r.Err == nil && r.Outcome != engine.Kept {
			s.record(msgs[i].Queue, r.ID, at)
		}
	}
	return rs, nil
}

// Reschedule counts as a push of the message with its new due time.
func (s *store) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	s.recording.Lock()
	defer s.recording.Unlock()
	if err := s.failure(); err != nil {
		return engine.Info{}, err
	}
	at := s.clock.now()
	info, err := s.Engine.Reschedule(ctx, ref, due)
	if err == nil {
		s.record(ref.Queue, info.ID, at)
	}
	return info, err
}

// record records a message as it is now.
func (s *store) record(queue string, id engine.ID, at time.Time) {
	info, err := s.Engine.Get(context.Background(), engine.Ref{Queue: queue, ID: id})
	if err != nil {
		return // the engine was closed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byID[id]
	if r == nil {
		r = new(record)
		s.byID[id], s.records = r, append(s.records, r)
	}
	*r = record{Info: info, at: at}
}

// Cancel cancels, and records what was cancelled.
func (s *store) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	s.recording.Lock()
	defer s.recording.Unlock()
	if err := s.failure(); err != nil {
		return nil, err
	}
	errs, err := s.Engine.Cancel(ctx, refs)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, failed := range errs {
		if failed == nil {
			s.cancelled(refs[i])
		}
	}
	return errs, err
}

// cancelled records that a message was cancelled. The newest with a key was the live one.
// Called with s.mu held.
func (s *store) cancelled(ref engine.Ref) {
	for _, r := range slices.Backward(s.records) {
		if r.Queue == ref.Queue && (r.ID == ref.ID || ref.ID == 0 && r.Key == ref.Key) {
			r.cancelled = true
			return
		}
	}
}

// pushed returns what was pushed to the queues and not cancelled; without queues, to any.
func (s *store) pushed(queues ...string) (found []record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if !r.cancelled && (len(queues) == 0 || slices.Contains(queues, r.Queue)) {
			found = append(found, *r)
		}
	}
	return found
}

// state returns the present state of a recorded message.
func (s *store) state(r *record) engine.State {
	info, err := s.Engine.Get(context.Background(), engine.Ref{Queue: r.Queue, ID: r.ID})
	if err != nil {
		return engine.Gone
	}
	return info.State
}

func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = nil
	clear(s.byID)
}

func (s *store) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails
}
