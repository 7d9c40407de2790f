package redisengine

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// stored returns the fields of a message's record but its creation.
func stored(t *testing.T, s *redistest.Server, e *Engine, id engine.ID) string {
	t.Helper()
	m := s.Do("HGET", e.queue("q").shards[0].keys[slices.Index(keyNames[:], "msg")], member(id))
	record, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	return record[:1] + record[1+createdBytes:]
}

// TestSettledPriorityIsStoredAsPushed: a settlement leaves the record that a push with the same
// priority makes, whatever else the record has.
func TestSettledPriorityIsStoredAsPushed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	kinds := map[string]engine.Terms{
		"usual":    {},
		"all":      {MaxAttempts: 3, TTR: time.Minute, ExpireAfter: time.Hour, Remember: time.Hour, Backoff: []time.Duration{time.Second}, Isolate: new(false)},
		"expiring": {ExpireAfter: time.Hour},
		"own ttr":  {TTR: time.Second},
	}
	priorities := []uint32{0, 1023, codec.UsualPriority, 1025, math.MaxUint32}
	for kind, terms := range kinds {
		for _, large := range []int{0, largeContent} {
			t.Run(fmt.Sprint(kind, large), func(t *testing.T) {
				t.Parallel()
				e := openStore(t, s.URL(), "prefix="+freshPrefix(), "shards=1")
				message := func(priority uint32) engine.Message {
					m := engine.Message{Queue: "q", Key: "k", Terms: terms}
					m.Priority, m.Body = &priority, make([]byte, large)
					return m
				}
				want := make(map[uint32]string)
				for _, p := range priorities {
					want[p] = stored(t, s, e, push(t, e, message(p))[0].ID)
					if _, err := e.Purge(t.Context(), "q", 0); err != nil {
						t.Fatal(err)
					}
				}
				id := push(t, e, message(codec.UsualPriority))[0].ID
				for _, from := range priorities {
					for _, to := range priorities {
						for _, p := range []uint32{from, to} {
							l := lease1(t, e, "q")
							if r := settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Release, Priority: &p}); r.Err != nil {
								t.Fatal(r.Err)
							}
						}
						if got := stored(t, s, e, id); got != want[to] {
							t.Errorf("from %d to %d: %q is stored, not %q", from, to, got, want[to])
						}
					}
				}
				l := lease1(t, e, "q")
				if settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack}); len(l.Body) != large {
					t.Errorf("of %d bytes %d are left", large, len(l.Body))
				}
				for _, key := range keysOf(t, s, e, "q") {
					if !slices.Contains([]string{"meta", "key", "finished"}, key) {
						t.Errorf("%s is left", key)
					}
				}
			})
		}
	}
}

// TestSettlementsAreNoLongerForPriorities of others: without one, nothing more is sent.
func TestSettlementsAreNoLongerForPriorities(t *testing.T) {
	t.Parallel()
	e := &Engine{prefix: "p", shards: 1}
	for do := engine.Ack; do <= engine.Extend; do++ {
		b := batch{e: e, room: 1}
		e.addSettlement(&b, newQueue(e, "q").shards[0], 0, &engine.Settlement{Do: do, When: &engine.When{}}, codec.Token{ID: 1}, "")
		args := 4
		if do == engine.Ack {
			args = 2
		}
		if c := b.calls[0]; len(c.args) != ahead+1+args || c.how[0] != byte(do-engine.Ack) {
			t.Errorf("%v is sent as %d, with %q", do, c.how, c.args)
		}
	}
}

// TestPriorityOfALapsedLease: a settlement after the deadline moves the message from where it
// waits or is dead.
func TestPriorityOfALapsedLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, attempts := range []uint32{1, 2} { // dead, or waiting again
		for do := engine.Retry; do <= engine.Bury; do++ {
			for _, p := range [][2]uint32{{codec.UsualPriority, 5}, {5, codec.UsualPriority}, {5, 6}} {
				t.Run(fmt.Sprint(do, attempts, p), func(t *testing.T) {
					e := openStore(t, s.URL(), "prefix="+freshPrefix(), "shards=1")
					clock := enginetest.NewClock()
					e.stopped = clock.Now
					m := plain("q", "k")
					m.Priority, m.MaxAttempts = &p[0], attempts
					id := push(t, e, m)[0].ID
					l := lease1(t, e, "q")
					clock.Advance(2 * time.Hour)
					if n, err := e.Queue(t.Context(), "q"); err != nil || n.Leased > 0 { // it has lapsed
						t.Fatalf("%+v, %v", n, err)
					}
					if r := settle1(t, e, engine.Settlement{Token: l.Token, Do: do, When: &engine.When{}, Priority: &p[1]}); r.Err != nil {
						t.Fatal(r.Err)
					}
					i, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: id})
					if err != nil || i.Priority != p[1] {
						t.Errorf("%+v, %v", i, err)
					}
					if i.State == engine.Dead {
						if _, err := e.Redrive(t.Context(), "q", nil, 0); err != nil {
							t.Fatal(err)
						}
					}
					if again := lease1(t, e, "q"); again.Priority != p[1] {
						t.Errorf("leased %+v", again)
					}
					n, err := e.Queue(t.Context(), "q")
					if err != nil || n.Ready+n.Scheduled+n.Dead > 0 || n.Leased != 1 {
						t.Errorf("%+v, %v", n, err)
					}
				})
			}
		}
	}
}
