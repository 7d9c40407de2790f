package redisengine

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestMemoriesLeaveNothing: once their time is over and the shard was visited, or the
// queue is looked through, no key of it is left.
func TestMemoriesLeaveNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	e := openStore(t, s.URL())
	e.stopped = clock.Now
	ctx := t.Context()
	const n = 1200 // more than one script looks after
	msgs := make([]engine.Message, n)
	refs := make([]engine.Ref, n)
	for i := range msgs {
		key := strconv.Itoa(i)
		msgs[i] = engine.Message{Queue: "q", Key: key, Due: engine.When{In: time.Hour}, Terms: engine.Terms{Remember: time.Minute}}
		refs[i] = engine.Ref{Queue: "q", Key: key}
	}
	if _, err := e.Push(ctx, msgs); err != nil {
		t.Fatal(err)
	}
	errs, err := e.Cancel(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	base := "tarry:{q.0}:"
	size := func(command, key string) int64 {
		m := s.Do(command, base+key)
		n, err := m.AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if keys, ends := size("HLEN", "key"), size("ZCARD", "finished"); keys != n || ends != n {
		t.Fatalf("%d keys, %d of them with an end", keys, ends)
	}
	// A key that is taken again has no memory.
	if r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "7", OnConflict: engine.Replace, Due: engine.When{In: time.Hour}}}); err != nil || r[0].Outcome != engine.Created {
		t.Fatalf("%v, %+v", err, r)
	}
	if info, err := e.Queue(ctx, "q"); err != nil || info.Finished != n-1 {
		t.Fatalf("%v, %+v", err, info)
	}
	clock.Advance(time.Minute)
	if info, err := e.Queue(ctx, "q"); err != nil || info.Finished != 0 {
		t.Fatalf("%v, %+v", err, info)
	}
	if keys, ends := size("HLEN", "key"), size("ZCARD", "finished"); keys != 1 || ends != 0 {
		t.Fatalf("%d keys, %d of them with an end", keys, ends)
	}
}

// TestMemoriesDoNotGather: memories are dropped even if messages are only pushed and
// cancelled, or acked under old leases, and nothing is leased.
func TestMemoriesDoNotGather(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := enginetest.NewClock()
	e := openStore(t, s.URL(), "shards=1")
	e.stopped = clock.Now
	const rounds, n = 10, 50
	queues := []string{"cancelled", "acked"}
	msgs := make([]engine.Message, rounds*n)
	for _, queue := range queues {
		for i := range msgs {
			msgs[i] = plain(queue, strconv.Itoa(i))
			msgs[i].Remember = time.Second
			if queue == "cancelled" {
				msgs[i].Due.In = time.Hour
			}
		}
		push(t, e, msgs...)
	}
	leases := leaseAll(t, e, "acked")
	for i := 0; i < len(msgs); i += n {
		var refs []engine.Ref
		var acks []engine.Settlement
		for j := i; j < i+n; j++ {
			refs = append(refs, engine.Ref{Queue: "cancelled", Key: strconv.Itoa(j)})
			acks = append(acks, engine.Settlement{Token: leases[j].Token, Do: engine.Ack})
		}
		if errs, err := e.Cancel(t.Context(), refs); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		if settled, err := e.Settle(t.Context(), acks); err != nil || settled[0].Err != nil {
			t.Fatal(settled, err)
		}
		clock.Advance(2 * time.Second)
	}
	for _, queue := range queues {
		m := s.Do("ZCARD", "tarry:{"+queue+".0}:finished")
		if left, err := m.AsInt64(); err != nil || left != n {
			t.Errorf("%d keys of %s are remembered, %v", left, queue, err)
		}
	}
}

// TestRememberedInEveryWay: flags of a record decide which quick ways a script may take.
func TestRememberedInEveryWay(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	ctx := t.Context()
	for n, size := range []int{10, 2 * largeContent} {
		for priority := range uint32(2) {
			for way := range 3 {
				key := fmt.Sprint(n, priority, way)
				m := engine.Message{Queue: key, Key: key, Content: engine.Content{Body: make([]byte, size)}}
				m.Remember, m.Priority = time.Hour, new(1024+priority)
				r, err := e.Push(ctx, []engine.Message{m})
				if err != nil || r[0].Err != nil {
					t.Fatal(err, r)
				}
				ref := engine.Ref{Queue: key, Key: key}
				want := engine.Acked
				switch way {
				case 0:
					want = engine.Cancelled
					if errs, err := e.Cancel(ctx, []engine.Ref{ref}); err != nil || errs[0] != nil {
						t.Fatal(err, errs)
					}
				default:
					g, err := e.Lease(ctx, []engine.Want{{Queue: key, Max: 1, Remote: way == 1}})
					if err != nil || len(g.Queues[0].Messages) != 1 {
						t.Fatal(err, g)
					}
					ack := engine.Settlement{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}
					// The second comes too late, in the same script.
					if settled, err := e.Settle(ctx, []engine.Settlement{ack, ack}); err != nil || settled[0].Err != nil || settled[1].Err == nil {
						t.Fatal(err, settled)
					}
				}
				i, err := e.Get(ctx, ref)
				if err != nil || i.Ending != want || i.ID != r[0].ID || !i.Forgotten.Equal(i.Ended.Add(time.Hour)) {
					t.Errorf("%s: %v, %+v", key, err, i)
				}
				info, err := e.Queue(ctx, key)
				if err != nil || info != (engine.QueueInfo{Queue: key, Finished: 1}) {
					t.Errorf("%s: %v, %+v", key, err, info)
				}
			}
		}
	}
}
