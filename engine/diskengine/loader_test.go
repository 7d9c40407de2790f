package diskengine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// The scene of the tests below: messages 0 to 23 of one queue, due two seconds
// apart. Memory holds the first eight, the loader reads the next eight and leaves
// the last eight alone.
const (
	sceneChunk  = 8
	sceneLength = 3 * sceneChunk
	sceneStep   = 2 * time.Second
)

type loadScene struct {
	t     *testing.T
	e     *Engine
	clock *enginetest.Clock
	q     *queue
	begun time.Time
	fresh int
}

// due is when the n-th message is due, or one that stands behind it.
func (s *loadScene) due(n int) engine.When {
	return engine.When{At: s.begun.Add(time.Duration(n+1) * sceneStep)}
}

var scenes int

func newLoadScene(t *testing.T, e *Engine, clock *enginetest.Clock) *loadScene {
	t.Helper()
	scenes++
	s := &loadScene{t: t, e: e, clock: clock, begun: clock.Now()}
	name := fmt.Sprint("q", scenes)
	q, err := e.makeQueue(name)
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	q.kicked = true // the test is the loader
	var msgs []engine.Message
	for i := range sceneLength {
		m := s.message(fmt.Sprint(i), s.due(i))
		if i%sceneChunk == 1 {
			m.ExpireAfter = time.Second
		}
		msgs = append(msgs, m)
	}
	pushAll(t, e, msgs)
	s.forget(sceneChunk)
	return s
}

func (s *loadScene) message(key string, due engine.When) engine.Message {
	m := waiting(key, 0)
	m.Queue, m.Due, m.TTR, m.MaxAttempts = s.q.name, due, time.Minute, 2
	return m
}

// forget lets memory hold only the first n messages.
func (s *loadScene) forget(n int) {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.near.len() > n {
		q.moveLoadedTo(q.near.evict(n))
	}
}

func (s *loadScene) ref(key string) engine.Ref { return engine.Ref{Queue: s.q.name, Key: key} }

func (s *loadScene) push(m engine.Message) {
	r, err := s.e.Push(s.t.Context(), []engine.Message{m})
	if err == nil {
		err = r[0].Err
	}
	s.may(err)
}

// may passes over what a call may answer when the message has gone another way.
func (s *loadScene) may(err error) {
	for _, ok := range []error{engine.ErrNotFound, engine.ErrLeased, engine.ErrNotDue, engine.ErrLeaseLost} {
		if errors.Is(err, ok) {
			return
		}
	}
	if err != nil {
		s.t.Error(err)
	}
}

func (s *loadScene) lease(most int, ttr time.Duration) []engine.Lease {
	g, err := s.e.Lease(s.t.Context(), []engine.Want{{Queue: s.q.name, Max: most, TTR: ttr}})
	if err != nil || g.Queues[0].Err != nil {
		s.t.Error(err, g)
		return nil
	}
	return g.Queues[0].Messages
}

func (s *loadScene) settle(l []engine.Lease, do engine.Action, when engine.When) {
	for _, l := range l {
		r, err := s.e.Settle(s.t.Context(), []engine.Settlement{{Token: l.Token, Do: do, When: &when, TTR: time.Minute}})
		if err == nil {
			err = r[0].Err
		}
		s.may(err)
	}
}

type loadOp struct {
	name string
	run  func(s *loadScene)
}

// loadOps are the changes that may meet a loader: each kind, of what is in memory,
// what is being read and what is left alone, to each of those.
func loadOps() []loadOp {
	const near, read, left = 3, sceneChunk + 3, 2*sceneChunk + 3
	var ops []loadOp
	add := func(name string, run func(s *loadScene)) { ops = append(ops, loadOp{name, run}) }
	to := map[string]int{"now": -1, "memory": near + 1, "what is read": read + 1, "what is left": left + 1}
	for where, n := range map[string]int{"memory": near, "what is read": read, "what is left": left} {
		key := fmt.Sprint(n)
		for dest, d := range to {
			add("reschedule from "+where+" to "+dest, func(s *loadScene) {
				_, err := s.e.Reschedule(s.t.Context(), s.ref(key), s.due(d))
				s.may(err)
			})
			for policy, c := range map[string]engine.Conflict{"replace": engine.Replace, "rearm": engine.Rearm} {
				add(policy+" from "+where+" to "+dest, func(s *loadScene) {
					m := s.message(key, s.due(d))
					m.OnConflict, m.Priority = c, new(uint32(7))
					s.push(m)
				})
			}
			add("push atomic from "+where+" to "+dest, func(s *loadScene) {
				m := s.message(key, s.due(d))
				m.OnConflict = engine.Replace
				_, err := s.e.PushAtomic(s.t.Context(), []engine.Message{m})
				s.may(err)
			})
			add("lease, snooze from "+where+" to "+dest, func(s *loadScene) {
				s.clock.Set(s.due(n).At)
				if got := s.lease(1, 0); len(got) > 0 {
					s.settle(got, engine.Snooze, s.due(d))
				}
			})
		}
		add("keep due in "+where, func(s *loadScene) {
			m := s.message(key, s.due(0))
			m.OnConflict, m.Priority = engine.KeepDue, new(uint32(9))
			s.push(m)
		})
		add("cancel in "+where, func(s *loadScene) {
			errs, err := s.e.Cancel(s.t.Context(), []engine.Ref{s.ref(key), s.ref(fmt.Sprint(n + 2))})
			s.may(errors.Join(append(errs, err)...))
		})
		add("claim in "+where, func(s *loadScene) {
			s.clock.Set(s.due(n).At)
			_, err := s.e.Claim(s.t.Context(), s.ref(key), engine.Want{TTR: time.Minute})
			s.may(err)
		})
		add("lease up to "+where, func(s *loadScene) {
			s.clock.Set(s.due(n).At)
			s.lease(3, 0)
		})
		add("lease up to "+where+", settle all ways", func(s *loadScene) {
			s.clock.Set(s.due(n).At)
			got := s.lease(6, 0)
			for i, do := range []engine.Action{engine.Ack, engine.Retry, engine.Release, engine.Bury, engine.Extend} {
				if i < len(got) {
					s.settle(got[i:i+1], do, s.due(read+i))
				}
			}
		})
		add("lease up to "+where+", lapse", func(s *loadScene) {
			s.clock.Set(s.due(n).At)
			for range 2 { // the second time they die
				s.lease(4, time.Second)
				s.clock.Advance(time.Second)
				_, err := s.e.Get(s.t.Context(), s.ref(key))
				s.may(err)
			}
		})
		add("the clock steps back from "+where, func(s *loadScene) {
			s.clock.Set(s.due(n).At)
			s.lease(1, 0)
			s.clock.Advance(-4 * time.Second)
			s.lease(1, 0)
		})
		add("memory overflows in "+where, func(s *loadScene) { s.forget(n) })
	}
	for dest, d := range to {
		add("push to "+dest, func(s *loadScene) {
			s.fresh++
			m := s.message(fmt.Sprint("fresh ", s.fresh), s.due(d))
			s.push(m)
		})
	}
	add("expire", func(s *loadScene) {
		s.clock.Set(s.due(sceneChunk + 3).At)
		s.lease(sceneChunk+2, 0)
	})
	add("purge", func(s *loadScene) {
		_, err := s.e.Purge(s.t.Context(), s.q.name, engine.PurgeDead)
		s.may(err)
	})
	add("redrive", func(s *loadScene) {
		s.clock.Set(s.due(2).At)
		s.settle(s.lease(2, 0), engine.Bury, engine.When{})
		_, err := s.e.Redrive(s.t.Context(), s.q.name, nil, 0)
		s.may(err)
	})
	return ops
}

// moments are before, between and behind the steps of the loader.
const moments = 4

// play loads one chunk and moves the mark, with changes in between.
func (s *loadScene) play(at [moments][]loadOp) {
	run := func(moment int) {
		for _, op := range at[moment] {
			op.run(s)
		}
	}
	run(0)
	r, loads := s.q.beginLoad(s.clock.Now().UnixMilli(), (*queue).wantsLoader)
	from := s.q.beginMark()
	run(1)
	var first []found
	if loads {
		r.err = r.read()
	}
	if from != lastPosition {
		var err error
		if first, _, err = s.q.readDue(s.e.store.db, from, lastPosition, 1); err != nil {
			s.t.Error(err)
		}
	}
	run(2)
	if loads {
		if _, err := s.q.endLoad(r); err != nil {
			s.t.Error(err)
		}
	}
	if from != lastPosition {
		if err := s.q.endMark(first); err != nil {
			s.t.Error(err)
		}
	}
	if err := survey(s.q); err != nil {
		s.t.Error("when the chunk was read: ", err)
	}
	run(3)
	if err := survey(s.q); err != nil {
		s.t.Error("after all: ", err)
	}
}

// TestChangesWhileLoading lets each change of a queue happen at each step of the
// loader, and random ones together: memory is as the disk afterwards.
func TestChangesWhileLoading(t *testing.T) {
	t.Parallel()
	e, clock := openMem(t)
	e.chunk = sceneChunk
	begun := clock.Now()
	ops := loadOps()
	play := func(name string, at [moments][]loadOp) bool {
		clock.Set(begun)
		before := t.Failed()
		newLoadScene(t, e, clock).play(at)
		if t.Failed() && !before {
			t.Error("in: " + name)
			for m, ops := range at {
				for _, op := range ops {
					t.Errorf("\tat moment %d: %s", m, op.name)
				}
			}
		}
		return !t.Failed()
	}
	for _, op := range ops {
		for m := range moments {
			var at [moments][]loadOp
			at[m] = []loadOp{op}
			if !play("a single change", at) {
				return
			}
		}
	}
	seed := rand.Uint64()
	if s := os.Getenv("TARRY_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var at [moments][]loadOp
		for m := range at {
			for range r.IntN(3) {
				at[m] = append(at[m], ops[r.IntN(len(ops))])
			}
		}
		if !play(fmt.Sprint("TARRY_TEST_SEED=", seed), at) {
			return
		}
	}
}
