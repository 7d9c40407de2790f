package redisengine

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// revisions are those of the settings that each shard of a queue has.
func revisions(t *testing.T, e *Engine, name string) (all []string) {
	t.Helper()
	for _, s := range e.queue(name).shards {
		a := e.ask1(t.Context(), settingsScript, s)
		if a.err != nil {
			t.Fatal(a.err)
		}
		c, err := readSettings(&a.values[0])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c.at())
	}
	return all
}

// TestConfigureLeftHalfDone: settings were written to the first shard only. A push that
// learns them updates the other shards, and so does a count.
func TestConfigureLeftHalfDone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, finish := range map[string]func(e *Engine) error{
		"push": func(e *Engine) error {
			for i := range 20 {
				m := engine.Message{Queue: "push", Key: strconv.Itoa(i), Due: engine.When{In: time.Hour}}
				r, err := e.Push(t.Context(), []engine.Message{m})
				if err != nil {
					return err
				}
				if r[0].Err != nil {
					return r[0].Err
				}
			}
			return nil
		},
		"count": func(e *Engine) error {
			_, err := e.Queue(t.Context(), "count")
			return err
		},
		"tidy": func(e *Engine) error { return e.tidy(t.Context()) },
	} {
		e := openStore(t, s.URL(), "shards=3")
		first, err := e.Configure(t.Context(), name, engine.Settings{InFlight: 9}, "")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := appendSettings(nil, &engine.Settings{InFlight: 6}, 3)
		if err != nil {
			t.Fatal(err)
		}
		a := e.ask1(t.Context(), configureScript, e.queue(name).shards[0], first, rueidis.BinaryString(raw))
		if a.err != nil {
			t.Fatal(a.err)
		}
		other := openStore(t, s.URL())
		if name == "push" { // which learns from the first shard that it meets
			if _, _, err := other.Settings(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if got := revisions(t, e, name); got[0] == first || got[1] != first || got[2] != first {
			t.Fatalf("%s: revisions %q after %q", name, got, first)
		}
		if err := finish(other); err != nil {
			t.Fatal(err)
		}
		if got := revisions(t, e, name); got[0] == first || got[1] != got[0] || got[2] != got[0] {
			t.Errorf("%s: revisions %q after %q", name, got, first)
		}
	}
}

// TestOlderSettingsAreNotBrought over newer ones, nor taken in for them.
func TestOlderSettingsAreNotBrought(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL(), "shards=2")
	q := e.queue("q")
	var known []*configured
	revision := ""
	for n := range int64(2) {
		var err error
		if revision, err = e.Configure(t.Context(), "q", engine.Settings{DeadMax: n + 1}, ""); err != nil {
			t.Fatal(err)
		}
		known = append(known, q.known.Load())
	}
	if err := e.bring(t.Context(), q.shards, known[0]); err != nil {
		t.Fatal(err)
	}
	if got := revisions(t, e, "q"); got[0] != revision || got[1] != revision {
		t.Errorf("revisions %q, not %s", got, revision)
	}
	if q.learn(known[0]); q.known.Load() != known[1] {
		t.Errorf("it knows revision %s, not %s", q.known.Load().at(), revision)
	}
}

// TestSettingsMeetTheLapsed: in each shard, deaths by a lapse that no script has applied yet
// count for dead_max, and older dead messages are dropped for them.
func TestSettingsMeetTheLapsed(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	e := openStore(t, redistest.Start(t).URL(), "shards=3")
	e.stopped = clock.Now
	ctx := t.Context()
	const n = 60
	leased := func() []engine.Lease {
		t.Helper()
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i] = engine.Message{Queue: "q", Key: strconv.Itoa(i), Terms: engine.Terms{MaxAttempts: 1, TTR: time.Minute}}
		}
		_, err := e.Push(ctx, msgs)
		if err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
		var all []engine.Lease
		for len(all) < n {
			g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: n, Remote: true}})
			if err != nil || g.Queues[0].Err != nil || len(g.Queues[0].Messages) == 0 {
				t.Fatalf("%d are leased, %+v, %v", len(all), g, err)
			}
			all = append(all, g.Queues[0].Messages...)
		}
		return all
	}
	buried := leased()
	for _, l := range buried {
		if _, err := e.Settle(ctx, []engine.Settlement{{Token: l.Token, Do: engine.Bury}}); err != nil {
			t.Fatal(err)
		}
	}
	leased()
	clock.Advance(time.Hour)
	if _, err := e.Configure(ctx, "q", engine.Settings{DeadMax: 3}, ""); err != nil {
		t.Fatal(err)
	}
	for _, l := range buried {
		if i, err := e.Get(ctx, engine.Ref{Queue: "q", ID: l.ID}); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("one that died before is %v, %v", i.State, err)
		}
	}
	if info, err := e.Queue(ctx, "q"); err != nil || info.Dead != 3 || info.Leased != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestFreePlaceIsTold to other processes, and only where messages may be held back.
func TestFreePlaceIsTold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := openStore(t, s.URL()), openStore(t, s.URL())
	ctx := t.Context()
	hints := make(chan string, 1000)
	defer b.Watch(func(queue string) { hints <- queue })()
	eventually(t, "the subscription", b.hears.Load)
	if _, err := a.Configure(ctx, "q", engine.Settings{InFlight: 1}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Push(ctx, []engine.Message{{Queue: "q"}, {Queue: "q"}, {Queue: "free"}, {Queue: "free"}}); err != nil {
		t.Fatal(err)
	}
	lease := func(e *Engine, queue string) engine.Granted {
		t.Helper()
		g, err := e.Lease(ctx, []engine.Want{{Queue: queue, Max: 1}})
		if err != nil || g.Queues[0].Err != nil {
			t.Fatal(err, g)
		}
		return g.Queues[0]
	}
	ack := func(g engine.Granted) {
		t.Helper()
		r, err := a.Settle(ctx, []engine.Settlement{{Token: g.Messages[0].Token, Do: engine.Ack}})
		if err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
	}
	held := lease(a, "q")
	if g := lease(b, "q"); !g.Held || len(g.Messages) > 0 || g.NextDue.IsZero() {
		t.Fatalf("%+v", g)
	}
	if g := lease(b, "q"); !g.Held { // of what it knows, without asking
		t.Fatalf("%+v", g)
	}
	for len(hints) > 0 {
		<-hints
	}
	ack(held)
	// By hints alone, which may be of before, and sooner than b's clock thinks.
	for n := 0; n == 0; {
		g := lease(b, "q")
		if n = len(g.Messages); n == 0 && time.Until(g.NextDue) > time.Second {
			<-hints
		}
	}
	free := lease(a, "free")
	before := runs(t, s, "publish")
	ack(free)
	if after := runs(t, s, "publish"); after != before {
		t.Errorf("an ack told others %d times of a queue without settings", after-before)
	}
}

// TestSettingsTakenAwayStayAway: an engine that was not used since knows them yet when the
// queue has been empty and forgotten meanwhile.
func TestSettingsTakenAwayStayAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	idle, other := openStore(t, s.URL(), "shards=2"), openStore(t, s.URL())
	ctx := t.Context()
	if _, err := idle.Configure(ctx, "q", engine.Settings{InFlight: 1}, ""); err != nil {
		t.Fatal(err)
	}
	push(t, idle, plain("q", ""))
	revision, err := other.Configure(ctx, "q", engine.Settings{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if s := settle1(t, other, engine.Settlement{Token: lease1(t, other, "q").Token, Do: engine.Ack}); s.Err != nil {
		t.Fatal(s.Err)
	}
	s.Do("DEL", other.registry.seen) // as if it had been noted long ago
	if queues, _, err := other.Queues(ctx, "", 10); err != nil || len(queues) > 0 {
		t.Fatal(queues, err)
	}
	m := s.Do("ZCARD", other.registry.names)
	if n, err := m.AsInt64(); err != nil || n != 0 {
		t.Fatalf("%d queues are not forgotten, %v", n, err)
	}
	push(t, idle, plain("q", ""), plain("q", ""))
	if is, now, err := other.Settings(ctx, "q"); err != nil || is.InFlight != 0 || now != revision {
		t.Errorf("%+v at revision %s, %v, after none at %s", is, now, err, revision)
	}
}

// TestDamagedSettingsAreNone: pushes and leases go on, and they can be written anew.
func TestDamagedSettingsAreNone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	ctx := t.Context()
	for n, damaged := range []string{"", "x", "12345678"} {
		name := "q" + strconv.Itoa(n)
		if _, err := e.Configure(ctx, name, engine.Settings{InFlight: 1}, ""); err != nil {
			t.Fatal(err)
		}
		s.Do("HSET", "tarry:{"+name+".0}:meta", "settings", damaged)
		other := openStore(t, s.URL())
		if r, err := other.Push(ctx, []engine.Message{{Queue: name}, {Queue: name}}); err != nil || r[0].Err != nil {
			t.Fatalf("%q: %v, %+v", damaged, err, r)
		}
		if g, err := other.Lease(ctx, []engine.Want{{Queue: name, Max: 3}}); err != nil || len(g.Queues[0].Messages) != 2 {
			t.Errorf("%q: %v, %+v", damaged, err, g)
		}
		if _, err := other.Queue(ctx, name); err != nil {
			t.Errorf("%q: %v", damaged, err)
		}
		if _, revision, err := other.Settings(ctx, name); err != nil || revision != "0" {
			t.Errorf("%q: %v, revision %q", damaged, err, revision)
		}
		if _, err := other.Configure(ctx, name, engine.Settings{InFlight: 2}, "0"); err != nil {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}
