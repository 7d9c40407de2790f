package redisengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestLookingWhereWritesAreRefused: a master that has lost its replicas refuses writes but
// answers reads, also where a sweep would come first.
func TestLookingWhereWritesAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL(), "shards=2")
	clock := enginetest.NewClock()
	e.stopped = clock.Now
	ctx := t.Context()
	expiring, last := plain("q", "expired"), plain("q", "spent")
	expiring.ExpireAfter, expiring.Priority = time.Minute, new(uint32(5))
	last.MaxAttempts = 1
	last.TTR = time.Minute
	lapsing := plain("q", "lapsed")
	lapsing.TTR = time.Minute
	push(t, e, lapsing, last, plain("q", "leased"))
	if got := leaseAll(t, e, "q"); len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	later, soon := plain("q", "later"), plain("q", "soon")
	later.Due.In = 3 * time.Hour
	soon.Due.In, soon.Priority = 2*time.Minute, new(uint32(7))
	pushed := push(t, e, expiring, later, soon, plain("q", "ready"))
	clock.Advance(10 * time.Minute)

	s.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	r, err := e.Push(ctx, []engine.Message{plain("q", "new")})
	if err != nil {
		t.Fatal(err)
	}
	fails(t, r[0].Err, engine.ErrUnavailable, "NOREPLICAS", "too few replicas")

	looks := func(refused bool) {
		t.Helper()
		for key, want := range map[string]engine.State{
			"later": engine.Scheduled, "soon": engine.Ready, "ready": engine.Ready, "leased": engine.Leased,
			"lapsed": engine.Ready, "spent": engine.Dead,
		} {
			i, err := e.Get(ctx, engine.Ref{Queue: "q", Key: key})
			if err != nil || i.State != want {
				t.Errorf("refused %v: get %q: %v, %v, not %v", refused, key, i.State, err, want)
			}
			if (key == "lapsed" || key == "spent") && i.LastError != "lease lapsed" {
				t.Errorf("refused %v: %q says %q", refused, key, i.LastError)
			}
		}
		_, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "expired"})
		fails(t, err, engine.ErrNotFound)
		n, err := e.Queue(ctx, "q")
		if err != nil || n.Scheduled != 1 || n.Leased != 1 || n.Ready+n.Dead < 4 || n.NextDue.Sub(clock.Now()).Round(time.Minute) != 170*time.Minute {
			t.Errorf("refused %v: %+v, %v", refused, n, err)
		}
		queues, _, err := e.Queues(ctx, "", 10)
		if err != nil || len(queues) != 1 {
			t.Errorf("refused %v: %+v, %v", refused, queues, err)
		}
		f, err := e.Forecast(ctx, "q", time.Hour, 4*time.Hour)
		if err != nil || f.Buckets[2].Count+f.Buckets[3].Count != 1 {
			t.Errorf("refused %v: %+v, %v", refused, f, err)
		}
		if first := peek1(t, e, "q"); first.State != engine.Ready || !refused && first.Key != "soon" {
			t.Errorf("refused %v: %+v is first", refused, first)
		}
		if found, err := e.Find(ctx, []engine.ID{pushed[0].ID, pushed[2].ID}); err != nil || found[0] != "" || found[1] != "q" {
			t.Errorf("refused %v: found in %q, %v", refused, found, err)
		}
		var keys []string
		for state := engine.Scheduled; state <= engine.Leased; state++ {
			page, err := e.List(ctx, engine.ListQuery{Queue: "q", State: state, Limit: 10, Body: true})
			if err != nil {
				t.Errorf("refused %v: list %v: %v", refused, state, err)
			}
			for _, i := range page.Messages {
				if i.State != state || len(i.Body) == 0 {
					t.Errorf("refused %v: listed %+v among %v", refused, i, state)
				}
				keys = append(keys, i.Key)
			}
		}
		if len(keys) < 4 {
			t.Errorf("refused %v: listed %q", refused, keys)
		}
	}
	before := s.Do("DBSIZE")
	looks(true)
	if after := s.Do("DBSIZE"); after.String() != before.String() {
		t.Errorf("there were %v keys, and are %v", before, after)
	}
	s.Do("CONFIG", "SET", "min-replicas-to-write", "0")
	looks(false)
	if n, err := e.Queue(ctx, "q"); err != nil || n.Ready != 3 || n.Dead != 1 {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestPushesWakeOnce: only a push that becomes the first due publishes a hint, whatever the
// priorities.
func TestPushesWakeOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	for i := range 50 {
		m := plain("q", "")
		m.Priority, m.Due.In = new(uint32(i)), time.Duration(100+i)*time.Minute
		push(t, e, m)
	}
	told := runs(t, s, "publish")
	m := plain("q", "")
	m.Priority, m.Due.In = new(uint32(1)), time.Minute
	push(t, e, m)
	if first, then := told, runs(t, s, "publish"); first > 2 || then != first+1 { // one checks the right to publish
		t.Errorf("50 pushes behind the first told others %d times, one before it %d times", first, then-first)
	}
}

// TestShardsAreForgotten with the queue that nobody uses: but what others remember of it
// is not mistaken for what it becomes.
func TestShardsAreForgotten(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL(), "shards=2")
	for _, queue := range []string{"empty", "paused", "full"} {
		push(t, e, plain(queue, "k"))
		if queue == "full" {
			continue
		}
		if n, err := e.Purge(t.Context(), queue, engine.PurgeDead); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := e.Pause(t.Context(), "paused", 0); err != nil {
		t.Fatal(err)
	}
	wakes := func() int64 {
		key := e.queue("empty").ofKey("k").keys[metaKey]
		m := s.Do("HGET", key, "wakes")
		n, _ := m.AsInt64()
		return n
	}
	was := wakes()
	if was == 0 {
		t.Fatal("the push has told nobody")
	}
	for _, queue := range []string{"empty", "paused", "full"} {
		s.Do("HSET", e.registry.seen, queue, "1")
		e.forgetEmpty(t.Context(), []counted{{QueueInfo: engine.QueueInfo{Queue: queue}}})
	}
	for queue, want := range map[string]int{"empty": 0, "paused": 2, "full": 1} {
		metas := 0
		for _, key := range keysOf(t, s, e, queue) {
			if key == "meta" {
				metas++
			}
		}
		if metas < want || want == 0 && metas > 0 {
			t.Errorf("%s has %d meta, not %d", queue, metas, want)
		}
	}
	push(t, e, plain("empty", "k"))
	if is := wakes(); is <= was {
		t.Errorf("wakes went from %d to %d", was, is)
	}
}
