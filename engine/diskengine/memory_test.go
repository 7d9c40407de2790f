package diskengine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// fleeting is a message whose key is remembered for so long.
func fleeting(key string, in, remember time.Duration) engine.Message {
	m := waiting(key, in)
	m.Remember = remember
	return m
}

// ackAll leases what is due and acks it.
func ackAll(t *testing.T, e *Engine) (n int) {
	t.Helper()
	for {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1000, Remote: true}})
		if err != nil {
			t.Fatal(err)
		}
		var acks []engine.Settlement
		for _, l := range g.Queues[0].Messages {
			acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
		}
		s, err := e.Settle(t.Context(), acks)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s {
			if s[i].Err != nil {
				t.Fatal(s[i].Err)
			}
		}
		if n += len(acks); len(acks) == 0 {
			return n
		}
	}
}

// remembers is how many memories a queue counts.
func remembers(q *queue) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts.finished
}

// stored counts the entries of a kind.
func stored(t *testing.T, q *queue, kind byte) (n int) {
	t.Helper()
	head := appendHead(nil, kind, q.num)
	if err := scan(q.e.store.db, head, upperBound(head), func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMemoriesOfAQuietQueueAreDropped leaves a queue alone when the keys it remembers
// are over: the loader drops them, chunk by chunk, and their room on disk.
func TestMemoriesOfAQuietQueueAreDropped(t *testing.T) {
	e, clock := openMem(t)
	const n = 5*dropChunk + 7
	var msgs []engine.Message
	for i := range n {
		msgs = append(msgs, fleeting(fmt.Sprint(i), 0, time.Hour))
	}
	pushAll(t, e, append(msgs, fleeting("stays", 0, 2*time.Hour)))
	if got := ackAll(t, e); got != n+1 {
		t.Fatalf("acked %d", got)
	}
	q := e.queue("q")
	sound(t, q)
	if k, z := stored(t, q, kindKey), stored(t, q, kindForget); k != n+1 || z != n+1 {
		t.Fatalf("%d keys and %d places to forget them for %d memories", k, z, n+1)
	}
	clock.Advance(time.Hour)
	e.tidy()
	rounds := 0
	for stored(t, q, kindForget) > 1 { // the loader is at it too
		e.lookAfter(q)
		if rounds++; rounds > n {
			t.Fatal("they are not dropped")
		}
	}
	sound(t, q)
	if k := stored(t, q, kindKey); k != 1 || remembers(q) != 1 {
		t.Errorf("%d keys are left, counted %d", k, remembers(q))
	}
	clock.Advance(time.Hour)
	e.tidy()
	for remembers(q) > 0 {
		e.lookAfter(q)
	}
	pushAll(t, e, []engine.Message{{Queue: "z", Content: engine.Content{Body: []byte("x")}}})
	for range forgetAfter + 2 {
		e.tidy()
	}
	if n := entries(t, e, q.num); e.queue("q") != nil || n > 0 {
		t.Errorf("the queue that remembers nothing is there: %v, with %d entries", e.queue("q"), n)
	}
}

// TestMemoriesHoldTogether does this and that, with clocks that step and openings
// between, and looks whether all on disk fits together.
func TestMemoriesHoldTogether(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		clock := enginetest.NewClock()
		cfg := &Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quietLog, MinFreeBytes: -1, MemTableBytes: 64 << 10}
		e, err := Open("data", cfg)
		if err != nil {
			t.Fatal(err)
		}
		var dead []engine.ID
		for step := range 400 {
			key := fmt.Sprint(rng.IntN(12))
			ref := engine.Ref{Queue: "q", Key: key}
			err = nil
			switch rng.IntN(10) {
			case 0, 1, 2:
				var msgs []engine.Message
				for range 1 + rng.IntN(3) {
					m := fleeting(fmt.Sprint(rng.IntN(12)), time.Duration(rng.IntN(3)-1)*time.Second, time.Duration(rng.IntN(4))*time.Second)
					m.OnConflict = engine.Conflict(rng.IntN(5))
					m.MaxAttempts = 1 + rng.Uint32N(2)
					if rng.IntN(3) == 0 {
						m.ExpireAfter = time.Second
					}
					msgs = append(msgs, m)
				}
				if rng.IntN(3) == 0 {
					_, _ = e.PushAtomic(t.Context(), msgs)
				} else {
					_, err = e.Push(t.Context(), msgs)
				}
			case 3, 4:
				var g engine.Grant
				if g, err = e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 5, TTR: time.Second, Remote: true}}); err != nil {
					break
				}
				if rng.IntN(3) == 0 { // too late
					clock.Advance(time.Second)
				}
				var s []engine.Settlement
				for _, l := range g.Queues[0].Messages {
					do := []engine.Action{engine.Ack, engine.Ack, engine.Bury, engine.Release, engine.Extend}[rng.IntN(5)]
					if s = append(s, engine.Settlement{Token: l.Token, Do: do}); do == engine.Bury {
						dead = append(dead, l.ID)
					}
				}
				_, err = e.Settle(t.Context(), s)
			case 5:
				_, err = e.Cancel(t.Context(), []engine.Ref{ref})
			case 6:
				clock.Advance(time.Duration(rng.IntN(3000)-300) * time.Millisecond)
			case 7:
				if len(dead) > 0 {
					_, err = e.Redrive(t.Context(), "q", dead[len(dead)-1:], 0)
				}
			case 8:
				if rng.IntN(5) == 0 {
					_, err = e.Purge(t.Context(), "q", engine.PurgeFinished)
				}
			case 9:
				if rng.IntN(2) == 0 {
					_, err = e.Configure(t.Context(), "q", engine.Settings{
						DeadKeep: time.Duration(rng.IntN(3)) * time.Second, DeadMax: rng.Int64N(4), MaxPending: rng.Int64N(3) * 8,
						InFlight: rng.Int64N(4), Rate: float64(rng.IntN(3)), Defaults: engine.Terms{Remember: time.Duration(rng.IntN(2)) * time.Second},
					}, "")
					break
				}
				if rng.IntN(5) > 0 {
					break
				}
				if err = e.Close(); err == nil {
					e, err = Open("data", cfg)
				}
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if q := e.queue("q"); q != nil && step%10 == 0 {
				sound(t, q)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedrivenUnderARememberedKey has a dead message come back whose key is remembered of
// another: the key stays its own when that would be forgotten.
func TestRedrivenUnderARememberedKey(t *testing.T) {
	e, clock := openMem(t)
	ids := pushAll(t, e, []engine.Message{waiting("k", 0)})
	buryAll(t, e)
	pushAll(t, e, []engine.Message{fleeting("k", 0, time.Hour)})
	ackAll(t, e)
	if r, err := e.Redrive(t.Context(), "q", ids, 0); err != nil || r.Redriven != 1 {
		t.Fatal(r, err)
	}
	sound(t, e.queue("q"))
	clock.Advance(2 * time.Hour)
	e.tidy()
	if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"}); err != nil || i.ID != ids[0] || i.State != engine.Ready {
		t.Errorf("%+v, %v", i, err)
	}
	sound(t, e.queue("q"))
}
