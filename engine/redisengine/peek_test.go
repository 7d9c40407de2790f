package redisengine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// peek1 returns what is first in a queue.
func peek1(t testing.TB, e *Engine, queue string) engine.Info {
	t.Helper()
	first, err := e.Peek(t.Context(), []string{queue})
	if err != nil || len(first) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	return first[0]
}

// TestPeekShowsWhatIsLeasedNext, of several queues over several shards.
func TestPeekShowsWhatIsLeasedNext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, shards := range []string{"shards=1", "shards=5"} {
		t.Run(shards, func(t *testing.T) {
			e := openStore(t, s.URL(), "prefix="+freshPrefix(), shards)
			clock := enginetest.NewClock()
			e.stopped = clock.Now
			queues := []string{"a", "empty", "b"}
			var msgs []engine.Message
			for i := range 200 {
				m := plain(queues[i%3/2*2], fmt.Sprint(i)) // keys go to all shards
				m.Due.In = time.Duration(rand.IntN(4)) * time.Millisecond
				switch rand.IntN(4) {
				case 0:
					m.Priority = new(uint32(1022 + rand.IntN(4)))
				case 1:
					m.ExpireAfter = time.Duration(1+rand.IntN(2)) * time.Minute
				}
				msgs = append(msgs, m)
			}
			push(t, e, msgs...)
			clock.Advance(90 * time.Second) // some have expired
			leased := 0
			for {
				first, err := e.Peek(t.Context(), queues)
				if err != nil {
					t.Fatal(err)
				}
				var next []engine.ID
				for i, q := range queues {
					next = append(next, 0)
					for _, l := range enginetest.MustLease(t, e, q, 1).Messages {
						next[i] = l.ID
						if p := first[i]; p.Queue != q || p.State != engine.Ready || !p.Due.Equal(l.Due) || p.Priority != l.Priority {
							t.Errorf("%+v is first, leased %+v", p, l)
						}
					}
				}
				if got := []engine.ID{first[0].ID, first[1].ID, first[2].ID}; !slices.Equal(got, next) {
					t.Fatalf("after %d: %v are first, leased %v", leased, got, next)
				}
				if next[0]+next[2] == 0 {
					break
				}
				leased++
			}
			if leased < 40 {
				t.Errorf("only %d were leased", leased)
			}
		})
	}
}

// countingTrips makes an engine on a client that counts.
func countingTrips(t *testing.T, client *trips, shards int) *Engine {
	t.Helper()
	e, err := New(t.Context(), client, &Config{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.slack = longWait
	return e
}

// TestPeekAndFindTakeFewTrips, however many queues there are.
func TestPeekAndFindTakeFewTrips(t *testing.T) {
	t.Parallel()
	client := &trips{Client: redistest.Start(t).Client()}
	e, other := countingTrips(t, client, 2), countingTrips(t, client, 2)
	const n = 2500
	var msgs []engine.Message
	var queues []string
	for i := range n {
		queues = append(queues, fmt.Sprintf("q%05d", i))
		msgs = append(msgs, plain(queues[i], ""))
	}
	var ids []engine.ID
	for _, r := range push(t, e, msgs...) {
		ids = append(ids, r.ID)
	}
	before := client.n.Load()
	first, err := e.Peek(t.Context(), append(queues, "unknown", queues[0]))
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range append(slices.Clone(ids), 0, ids[0]) {
		if first[i].ID != id {
			t.Fatalf("%v is first in queue %d, not %v", first[i].ID, i, id)
		}
	}
	if took := client.n.Load() - before; took > 20 {
		t.Errorf("peeking at %d queues took %d round trips", n, took)
	}
	for _, c := range []struct {
		e               *Engine
		from, to, trips int
	}{
		{other, 0, 1, 4}, {other, n - 1, n, 20}, // asked in the order of names
		{other, 0, findIDs, 15}, {e, 0, 1, 15}, {e, 0, n, 200},
	} {
		before := client.n.Load()
		found, err := c.e.Find(t.Context(), ids[c.from:c.to])
		if err != nil || !slices.Equal(found, queues[c.from:c.to]) {
			t.Fatalf("%d to %d: %q, %v", c.from, c.to, found, err)
		}
		if took := client.n.Load() - before; took > int64(c.trips) {
			t.Errorf("finding %d to %d took %d round trips, not %d", c.from, c.to, took, c.trips)
		}
	}
}

// TestFindOfOtherIDs: what this store cannot have made is not looked for.
func TestFindOfOtherIDs(t *testing.T) {
	t.Parallel()
	client := &trips{Client: redistest.Start(t).Client()}
	e := countingTrips(t, client, 3)
	id := push(t, e, plain("q", "k"))[0].ID
	before := client.n.Load()
	found, err := e.Find(t.Context(), []engine.ID{0, 1, idBase - 1, newID(1, 1, 3), newID(1, 1, MaxShards-1)})
	if err != nil || !slices.Equal(found, make([]string, 5)) || client.n.Load() != before {
		t.Errorf("%q, %v, %d round trips", found, err, client.n.Load()-before)
	}
	found, err = e.Find(t.Context(), []engine.ID{1, id, id + 1<<shardBits, id})
	if err != nil || !slices.Equal(found, []string{"", "q", "", "q"}) {
		t.Errorf("%q, %v", found, err)
	}
}

// TestClaimInAStateTellsOthers: whoever knew of nothing for an hour must know of the lapse of
// what was claimed, should the claimer die.
func TestClaimInAStateTellsOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, state := range []engine.State{engine.Scheduled, engine.Dead} {
		t.Run(state.String(), func(t *testing.T) {
			e, other := openStore(t, s.URL(), "prefix="+state.String()), openStore(t, s.URL(), "prefix="+state.String())
			m := plain("q", "k")
			if state == engine.Scheduled {
				m.Due.In = time.Hour
			}
			ref := engine.Ref{Queue: "q", ID: push(t, e, m)[0].ID, IfState: state}
			if state == engine.Dead {
				settle1(t, e, engine.Settlement{Token: lease1(t, e, "q").Token, Do: engine.Bury})
			}
			heard := make(chan string, 100)
			defer other.Watch(func(queue string) { heard <- queue })()
			eventually(t, "the subscription", other.hears.Load)
			nextDue := func() time.Time { return enginetest.MustLease(t, other, "q", 1).NextDue }
			nextDue()
			for len(heard) > 0 { // what the subscription itself has told
				<-heard
				nextDue()
			}
			l, err := e.Claim(t.Context(), ref, engine.Want{TTR: 10 * time.Minute, Remote: true})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-heard:
			case <-time.After(longWait):
				t.Fatal("nobody was told")
			}
			if at := other.queue("q").shards[0].known(); at != l.Deadline.UnixMilli() {
				t.Errorf("told of %d, not of the lapse at %d", at, l.Deadline.UnixMilli())
			}
			if at := nextDue(); !at.Equal(l.Deadline) {
				t.Errorf("the next is at %v, not at the lapse at %v", at, l.Deadline)
			}
		})
	}
}
