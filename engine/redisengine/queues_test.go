package redisengine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// trips is a client that counts round trips.
type trips struct {
	rueidis.Client
	n atomic.Int64
}

func (c *trips) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	c.n.Add(1)
	return c.Client.DoMulti(ctx, cmds...)
}

// TestQueuesTakesFewTrips, also when most are empty.
func TestQueuesTakesFewTrips(t *testing.T) {
	t.Parallel()
	client := &trips{Client: redistest.Start(t).Client()}
	e := countingTrips(t, client, 2)
	const n = 3000
	var msgs []engine.Message
	for i := range n {
		msgs = append(msgs, plain(fmt.Sprintf("q%05d", i), "k"))
	}
	push(t, e, msgs...)
	var refs []engine.Ref
	for i := range n {
		if i%3 != 0 {
			refs = append(refs, engine.Ref{Queue: msgs[i].Queue, Key: "k"})
		}
	}
	if errs, err := e.Cancel(t.Context(), refs); err != nil || len(errs) != len(refs) || errs[0] != nil {
		t.Fatal(errs[0], err)
	}
	before := client.n.Load()
	for after, at := "", 0; at < n; {
		queues, next, err := e.Queues(t.Context(), after, 400)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queues {
			if q.Queue != msgs[at].Queue || q.Ready != 1 {
				t.Fatalf("listed %+v, not %s with one message", q, msgs[at].Queue)
			}
			at += 3
		}
		if after = next; next == "" {
			if at < n {
				t.Fatalf("the list ends before %s", msgs[at].Queue)
			}
			break
		}
	}
	if took := client.n.Load() - before; took > 60 {
		t.Errorf("%d queues took %d round trips", n, took)
	}
}

// TestTidy: the registry forgets queues that are empty and out of use, though nobody lists
// them.
func TestTidy(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	r := e.registry
	push(t, e, plain("full", "k"))
	push(t, e, plain("lately", "k"))
	if s := settle1(t, e, engine.Settlement{Token: lease1(t, e, "lately").Token, Do: engine.Ack}); s.Err != nil {
		t.Fatal(s.Err)
	}
	old := fmt.Sprint(time.Now().Add(-forgetAfter - time.Minute).Unix())
	for i := range 1500 {
		name := fmt.Sprint("old", i)
		s.Do("ZADD", r.names, "0", name)
		s.Do("HSET", r.seen, name, old)
		s.Do("HSET", r.prints, fingerprintOf(name).String(), name)
	}
	s.Do("HSET", r.seen, "full", old)
	size := func(command, key string) int64 {
		m := s.Do(command, key)
		n, err := m.AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// An engine that has just been opened has other things to do.
	push(t, e, plain("another", "k"))
	if n := size("EXISTS", r.tidied); n != 0 {
		t.Error("a new engine looks through the registry")
	}
	e.opened = e.opened.Add(-2 * tidyAge)
	push(t, e, plain("yet another", "k"))
	eventually(t, "the old queues to be forgotten", func() bool { return size("ZCARD", r.names) == 4 })
	if seen, prints := size("HLEN", r.seen), size("HLEN", r.prints); seen != 4 || prints != 4 {
		t.Errorf("there are %d times and %d fingerprints of 4 queues", seen, prints)
	}
	// It is done once an hour, whoever does it.
	s.Do("ZADD", r.names, "0", "old")
	push(t, e, plain("and another", "k"))
	eventually(t, "the last to be noted", func() bool { return size("ZCARD", r.names) == 6 })
	if ttl := size("TTL", r.tidied); ttl < 3500 || ttl > 3600 {
		t.Errorf("the next time is in %d s", ttl)
	}
}

// TestRoundsOfManyWants: wants of one queue go one after another, others together.
func TestRoundsOfManyWants(t *testing.T) {
	t.Parallel()
	e := &Engine{prefix: "p", shards: 1}
	qs := []*queue{newQueue(e, "a"), newQueue(e, "b"), newQueue(e, "c")}
	var visits []*visit
	for i, n := range []int{0, 1, 0, 2, 0, 1} {
		visits = append(visits, &visit{q: qs[n]})
		if i == 3 {
			visits[i].granted.Err = engine.ErrInvalid
		}
	}
	got := rounds(visits)
	want := [][]*visit{{visits[0], visits[1]}, {visits[2], visits[5]}, {visits[4]}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
