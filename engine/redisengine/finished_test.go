package redisengine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// openListing opens a store that lists finished messages, by a clock of its own.
func openListing(t *testing.T, s *redistest.Server, more ...string) (*Engine, *enginetest.Clock) {
	t.Helper()
	clock := enginetest.NewClock()
	e := openStore(t, s.URL(), append(more, "prefix="+freshPrefix(), "history=1h")...)
	e.stopped = clock.Now
	return e, clock
}

// ack pushes messages and acks them.
func ack(t *testing.T, e *Engine, msgs ...engine.Message) []engine.PushResult {
	t.Helper()
	pushed := push(t, e, msgs...)
	var acks []engine.Settlement
	for _, l := range leaseAll(t, e, msgs[0].Queue) {
		acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
	}
	settled, err := e.Settle(t.Context(), acks)
	if err != nil || len(settled) != len(msgs) || settled[0].Err != nil {
		t.Fatalf("%v, %d acked of %d: %+v", err, len(settled), len(msgs), settled[:1])
	}
	return pushed
}

func finished(t *testing.T, e *Engine) []engine.Info {
	t.Helper()
	page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Finished, Limit: engine.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return page.Messages
}

// Each shard keeps its share, and nothing more of a message, until its time is over.
func TestHistoryIsSharedOut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e, clock := openListing(t, s, "shards=3", "history_max=20")
	ctx := t.Context()
	sizes := func(want int64) {
		t.Helper()
		leaseAll(t, e, "q") // until nothing is left to drop
		for _, sh := range e.queue("q").shards {
			for _, count := range [][2]string{{"ZCARD", "ended"}, {"HLEN", "history"}} {
				m := s.Do(count[0], sh.keys[slices.Index(keyNames[:], count[1])])
				n, err := m.AsInt64()
				if count[0] == "HLEN" {
					n /= 2 // one field for each key
				}
				if err != nil || n != want {
					t.Errorf("%s of shard %d has %d, not %d (%v)", count[1], sh.n, n, want, err)
				}
			}
		}
	}
	var msgs []engine.Message
	for i := range 2000 { // more of a shard than one script drops
		msgs = append(msgs, plain("q", strconv.Itoa(i)))
	}
	if _, err := e.Configure(ctx, "q", engine.Settings{HistoryMax: 3000}, ""); err != nil {
		t.Fatal(err)
	}
	ack(t, e, msgs...)
	if i, err := e.Queue(ctx, "q"); err != nil || i.History != 2000 {
		t.Fatalf("%v, %+v", err, i)
	}
	if _, err := e.Configure(ctx, "q", engine.Settings{}, ""); err != nil {
		t.Fatal(err)
	}
	sizes(7)
	if got := finished(t, e); len(got) != 21 {
		t.Errorf("%d are listed", len(got))
	}
	if all, _, err := e.Queues(ctx, "", 10); err != nil || len(all) != 1 || all[0].History != 21 { // it has nothing else
		t.Errorf("%v, %+v", err, all)
	}
	if _, err := e.Configure(ctx, "q", engine.Settings{History: 2 * time.Hour, HistoryMax: 4}, ""); err != nil {
		t.Fatal(err)
	}
	sizes(2)
	clock.Advance(2*time.Hour - time.Millisecond)
	sizes(2)
	if err := e.tidy(ctx); err != nil {
		t.Fatal(err)
	}
	if all, _, err := e.Queues(ctx, "", 10); err != nil || len(all) != 1 || all[0].History != 6 {
		t.Errorf("%v, %+v", err, all)
	}
	clock.Advance(time.Millisecond)
	sizes(0)
	if keys := keysOf(t, s, e, "q"); slices.ContainsFunc(keys, func(k string) bool { return k != "meta" }) {
		t.Errorf("these keys are left: %q", keys)
	}
}

// However a message is stored, each way of ending lists it, with the start of its lease.
func TestEndingsAreListed(t *testing.T) {
	t.Parallel()
	e, clock := openListing(t, redistest.Start(t), "shards=1")
	for name, kind := range kinds {
		for _, how := range []string{"acked", "cancelled by key", "cancelled by id"} {
			m := plain("q", name+how)
			m.Terms = engine.Terms{}
			kind(&m)
			r := push(t, e, m)[0]
			clock.Advance(time.Second)
			began := time.Time{}
			if how == "acked" {
				l := lease1(t, e, "q")
				if began = clock.Now(); !l.Started.Equal(began) {
					t.Errorf("%s: leased since %v, not %v", name, l.Started, began)
				}
				clock.Advance(time.Second)
				settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack})
			} else {
				ref := engine.Ref{Queue: "q", Key: m.Key}
				if how == "cancelled by id" {
					ref = engine.Ref{Queue: "q", ID: r.ID}
				}
				if errs, err := e.Cancel(t.Context(), []engine.Ref{ref}); err != nil || errs[0] != nil {
					t.Fatal(errs, err)
				}
			}
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: m.Key})
			if err != nil || i.ID != r.ID || !i.Ended.Equal(clock.Now()) || !i.Started.Equal(began) || !strings.HasPrefix(how, i.Ending.String()) {
				t.Errorf("%s, %s: %v, %+v", name, how, err, i)
			}
		}
	}
	if got := finished(t, e); len(got) != 3*len(kinds) {
		t.Errorf("%d are listed", len(got))
	}
}

// A look-up by key finds what ended last by the clock, also when that has stepped back.
func TestLookUpAfterAStepBack(t *testing.T) {
	t.Parallel()
	e, clock := openListing(t, redistest.Start(t), "shards=1")
	first := ack(t, e, plain("q", "k"))[0]
	clock.Set(clock.Now().Add(-time.Minute))
	ack(t, e, plain("q", "k"))
	for range 2 {
		if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"}); err != nil || i.ID != first.ID {
			t.Errorf("%v, %+v", err, i)
		}
		clock.Set(clock.Now().Add(time.Minute))
		first = ack(t, e, plain("q", "k"))[0] // at the same instant: the greater id
	}
}

// A late ack of a message that its last lapse made dead tells of that lapse and that lease.
func TestLateAckOfADeadOneIsListed(t *testing.T) {
	t.Parallel()
	e, clock := openListing(t, redistest.Start(t), "shards=1")
	ctx := t.Context()
	for _, met := range []bool{false, true} {
		m := plain("q", fmt.Sprint("met ", met))
		m.MaxAttempts, m.TTR = 1, time.Minute
		r := push(t, e, m)[0]
		began := clock.Now()
		g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, Worker: "w"}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatalf("%v, %+v", err, g)
		}
		clock.Advance(time.Hour / 2)
		if met {
			leaseAll(t, e, "q")
		}
		ended := clock.Now()
		if s := settle1(t, e, engine.Settlement{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}); s.Err != nil {
			t.Fatal(s.Err)
		}
		i, err := e.Get(ctx, engine.Ref{Queue: "q", Key: m.Key})
		if err != nil || i.ID != r.ID || !i.Started.Equal(began) || !i.Ended.Equal(ended) || i.Worker != "w" || i.LastError != engine.Lapsed || len(i.Failures) != 1 {
			t.Errorf("%v: %v, %+v", met, err, i)
		}
	}
}

func TestHistoryAtMostOnce(t *testing.T) {
	t.Parallel()
	e, clock := openListing(t, redistest.Start(t), "shards=1", "at_most_once=true")
	ids := push(t, e, plain("q", "a"), plain("q", ""))
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, Worker: "w"}})
	if err != nil || len(g.Queues[0].Messages) != 2 {
		t.Fatalf("%v, %+v", err, g)
	}
	got := finished(t, e)
	if len(got) != 2 || got[0].ID != ids[0].ID || got[0].Key != "a" || got[1].ID != ids[1].ID {
		t.Fatalf("%+v", got)
	}
	for _, i := range got {
		if i.Ending != engine.Acked || i.Worker != "w" || i.Attempt != 1 || !i.Started.Equal(clock.Now()) || !i.Ended.Equal(clock.Now()) {
			t.Errorf("%+v", i)
		}
	}
}

// A look-up by key passes over finished ones that are no longer listed, however many.
func TestLookUpBehindAHistory(t *testing.T) {
	t.Parallel()
	e, clock := openListing(t, redistest.Start(t), "shards=1")
	ctx := t.Context()
	m := plain("q", "k")
	dead := push(t, e, m)[0]
	settle1(t, e, engine.Settlement{Token: lease1(t, e, "q").Token, Do: engine.Bury, Reason: "no"})
	for range 600 { // more than one look into the index
		clock.Advance(time.Millisecond)
		ack(t, e, m)
	}
	if i, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "k"}); err != nil || i.State != engine.Finished {
		t.Fatalf("%v, %+v", err, i)
	}
	if _, err := e.Configure(ctx, "q", engine.Settings{History: engine.Never}, ""); err != nil {
		t.Fatal(err)
	}
	if i, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "k"}); err != nil || i.ID != dead.ID || i.State != engine.Dead {
		t.Fatalf("%v, %+v", err, i)
	}
	leaseAll(t, e, "q")
	if i, err := e.Queue(ctx, "q"); err != nil || i.History != 0 || i.Dead != 1 {
		t.Fatalf("%v, %+v", err, i)
	}
}

// Settings without a history are stored as by engines that know none.
func TestStoredHistory(t *testing.T) {
	for _, c := range []struct {
		s    engine.Settings
		json int // where it begins
	}{
		{engine.Settings{DeadMax: 5}, limitsBytes},
		{engine.Settings{History: engine.Never}, limitsBytes + listedBytes},
		{engine.Settings{HistoryMax: 1}, limitsBytes + listedBytes},
	} {
		raw, err := appendSettings(nil, &c.s, 3)
		if err != nil || raw[c.json] != '{' || raw[limitsBytes] == '{' != (c.json == limitsBytes) {
			t.Errorf("%+v: %v, %q", c.s, err, raw)
		}
	}
}

// Whatever is done to what is left of a message, others are listed, and it goes in time.
func TestDamagedHistory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for how, damage := range damages {
		e, clock := openListing(t, s, "shards=1")
		var msgs []engine.Message
		for i := range 5 {
			msgs = append(msgs, plain("q", strconv.Itoa(i)))
		}
		ids := ack(t, e, msgs...)
		keys := e.queue("q").shards[0].keys
		damage(s, keys[slices.Index(keyNames[:], "history")], member(ids[spoilt].ID))
		if got := finished(t, e); len(got) != 4 || slices.ContainsFunc(got, func(i engine.Info) bool { return i.ID == ids[spoilt].ID }) {
			t.Errorf("%s: %+v", how, got)
		}
		for _, ref := range []engine.Ref{{Queue: "q", ID: ids[spoilt].ID}, {Queue: "q", Key: "2"}} {
			if _, err := e.Get(t.Context(), ref); engine.Code(err) != "not_found" {
				t.Errorf("%s: %v", how, err)
			}
		}
		clock.Advance(time.Hour)
		leaseAll(t, e, "q")
		if i, err := e.Queue(t.Context(), "q"); err != nil || i.History != 0 {
			t.Errorf("%s: %v, %+v", how, err, i)
		}
	}
}

// An engine that lists none leaves what others list, as long as they list it, and their queue
// registered.
func TestHistoryOfOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e, clock := openListing(t, s, "shards=2", "history_max=20")
	other := openStore(t, s.URL(), "prefix="+e.prefix)
	other.stopped = clock.Now
	ctx := t.Context()
	holds := func(want int) {
		t.Helper()
		if q, err := other.Queue(ctx, "q"); err != nil || q.History != 0 || len(finished(t, other)) != 0 {
			t.Errorf("the other lists %d, %v", q.History, err)
		}
		if infos, err := other.counts(ctx, []string{"q"}); err != nil || isEmpty(&infos[0]) {
			t.Errorf("the other would forget the queue, %v", err)
		}
		leaseAll(t, other, "q")
		if got := len(finished(t, e)); got != want {
			t.Errorf("%d are listed, want %d", got, want)
		}
	}
	var msgs []engine.Message
	for i := range 100 {
		msgs = append(msgs, plain("q", strconv.Itoa(i)))
	}
	ack(t, e, msgs...)
	holds(20)
	ack(t, other, plain("q", "unlisted"))
	holds(20)
	clock.Advance(time.Hour - time.Millisecond)
	holds(20)
	clock.Advance(time.Millisecond)
	leaseAll(t, other, "q")
	if keys := keysOf(t, s, e, "q"); slices.ContainsFunc(keys, func(k string) bool { return k != "meta" }) {
		t.Errorf("these keys are left: %q", keys)
	}

	// Settings that list none hold for all.
	ack(t, e, msgs...)
	if _, err := other.Configure(ctx, "q", engine.Settings{History: engine.Never}, ""); err != nil {
		t.Fatal(err)
	}
	leaseAll(t, other, "q")
	if keys := keysOf(t, s, e, "q"); slices.Contains(keys, "ended") {
		t.Errorf("these keys are left: %q", keys)
	}
}

// A key is remembered as the last push of the message wants it.
func TestReplacedMessageIsRemembered(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	for _, remember := range []time.Duration{time.Hour, 0} {
		m := plain("q", fmt.Sprint(remember))
		m.Remember = time.Hour - remember
		push(t, e, m)
		m.Remember, m.OnConflict = remember, engine.Replace
		push(t, e, m)
		if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: m.Key}}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		m.OnConflict = engine.Keep
		if r := push(t, e, m)[0]; (r.Outcome == engine.Kept) != (remember > 0) {
			t.Errorf("remembered for %v, then it is %v", remember, r.Outcome)
		}
	}
}
