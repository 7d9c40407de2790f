package redisengine

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const engines, calls, batch, shards = 5, 40, 100, 3
	var mu sync.Mutex
	all := make(map[engine.ID]bool)
	var wg sync.WaitGroup
	for i := range engines {
		e := openStore(t, s.URL(), "shards="+strconv.Itoa(shards))
		wg.Go(func() {
			for n := range calls {
				msgs := make([]engine.Message, batch)
				for j := range msgs {
					if msgs[j] = plain("q", ""); j%2 == 0 {
						msgs[j].Key = strconv.Itoa(i) + "." + strconv.Itoa(n) + "." + strconv.Itoa(j)
					}
				}
				results, err := e.Push(t.Context(), msgs)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for j, r := range results {
					where := e.queue("q").of(engine.Ref{ID: r.ID})
					switch {
					case r.Err != nil:
						t.Error(r.Err)
					case all[r.ID]:
						t.Errorf("id %v came twice", r.ID)
					case len(r.ID.String()) != 19:
						t.Errorf("id %v has not 19 digits", r.ID)
					case where == nil || msgs[j].Key != "" && where != e.queue("q").ofKey(msgs[j].Key):
						t.Errorf("id %v of key %q does not name its shard", r.ID, msgs[j].Key)
					}
					all[r.ID] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(all) != engines*calls*batch {
		t.Errorf("%d messages have %d ids", engines*calls*batch, len(all))
	}
	// And each is found by its id alone, so it is where the id says.
	e := openStore(t, s.URL())
	n := 0
	for id := range all {
		if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: id}); err != nil || i.ID != id {
			t.Fatalf("%+v, %v", i, err)
		}
		if n++; n == 100 {
			break
		}
	}
}

// TestIDsAreNotReservedAgain: a failover may lose the last reservation, or all of them.
func TestIDsAreNotReservedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var last engine.ID
	for range 20 {
		e := openURL(t, s.URL())
		id := push(t, e, plain("q", ""))[0].ID
		if id <= last {
			t.Fatalf("id %v came after %v", id, last)
		}
		last = id
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		s.Do("DEL", "tarry"+idKeys[0])
		block := int64(last-idBase) >> (numberBits + shardBits)
		// A failover takes longer than the millisecond of a block.
		eventually(t, "a millisecond to pass", func() bool {
			m := s.Do("EVAL", "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) - 1767225600000", "0")
			now, err := m.AsInt64()
			return err == nil && now > block
		})
	}
}

// TestIDsOfAFullBlock: one that is used up is followed by a new one.
func TestIDsOfAFullBlock(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	seen := make(map[engine.ID]bool)
	for range blockSize + 2 {
		id, err := e.id(t.Context(), 200, e.patient())
		if err != nil {
			t.Fatal(err)
		}
		if seen[id] || shardOf(id) != 200 {
			t.Fatalf("id %v", id)
		}
		seen[id] = true
	}
	if e.ids.used != 2 {
		t.Errorf("of the second block %d are used", e.ids.used)
	}
}

// TestIDsUntil2092: as docs/formats/redis.md promises.
func TestIDsUntil2092(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	last := time.Date(2091, 12, 31, 0, 0, 0, 0, time.UTC).UnixMilli() - time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, id := range []engine.ID{newID(0, 0, 0), newID(uint64(last), 1<<numberBits-1, MaxShards-1)} {
		if len(id.String()) != 19 || idOf(member(id)) != id {
			t.Errorf("id %v has %d digits, in Redis %s", id, len(id.String()), member(id))
		}
	}
	if newID(1, 0, 0) < newID(0, 1<<numberBits-1, MaxShards-1) {
		t.Error("a later block has a lower id")
	}
	s.Do("SET", "tarry"+idKeys[0], strconv.FormatInt(last, 10))
	e := openStore(t, s.URL())
	id := push(t, e, plain("q", "k"))[0].ID
	m := plain("q", "k")
	m.OnConflict = engine.Replace
	if again := push(t, e, m)[0]; id <= newID(uint64(last), 0, 0) || again.ID != id {
		t.Errorf("pushed as %v, replaced as %v", id, again.ID)
	}
	if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"}); err != nil || i.ID != id {
		t.Errorf("got %+v, %v", i, err)
	}
	page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 1})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].ID != id {
		t.Errorf("listed %+v, %v", page, err)
	}
	if l := lease1(t, e, "q"); l.ID != id || settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack}).Err != nil {
		t.Errorf("leased %+v", l)
	}
}
