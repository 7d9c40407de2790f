package redisengine

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// keysOf returns the names of all keys of a queue, without what is common to them.
func keysOf(t *testing.T, s *redistest.Server, e *Engine, queue string) []string {
	t.Helper()
	m := s.Do("KEYS", e.prefix+":{"+queue+".*")
	keys, err := m.AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "}:answer:") })
	for i, key := range keys {
		keys[i] = key[strings.LastIndex(key, ":")+1:]
	}
	slices.Sort(keys)
	return keys
}

func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL(), "at_most_once=true", "shards=3")

	rare := plain("q", "rare")
	rare.Priority, rare.ExpireAfter = new(uint32(5)), time.Hour
	large := plain("q", "large")
	large.Body = make([]byte, 2*largeContent)
	later := plain("q", "later")
	later.Due.In = time.Hour
	pushed := push(t, e, plain("q", "usual"), rare, large, plain("q", ""), later)

	leased := leaseAll(t, e, "q")
	if len(leased) != 4 {
		t.Fatalf("leased %d messages: %+v", len(leased), leased)
	}
	if leased[0].Key != "rare" {
		t.Errorf("the first is %+v", leased[0])
	}
	for _, l := range leased {
		if l.Key == "large" && len(l.Body) != 2*largeContent || l.Attempt != 1 || l.Token == "" || l.State != engine.Leased {
			t.Errorf("leased %+v", l)
		}
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l.ID}); engine.Code(err) != "not_found" {
			t.Errorf("key %q: what was taken is still there: %v", l.Key, err)
		}
		// Its key is free, while it is being handled.
		if l.Key == "" {
			continue
		}
		again := plain("q", l.Key)
		again.Due.In = time.Hour
		if r := push(t, e, again)[0]; r.Outcome != engine.Created || r.ID == l.ID {
			t.Errorf("key %q: %+v", l.Key, r)
		}
		if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: l.Key}}); err != nil || errs[0] != nil {
			t.Error(err, errs)
		}
	}
	if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: pushed[4].ID}}); err != nil || errs[0] != nil {
		t.Error(err, errs)
	}
	if keys := slices.DeleteFunc(keysOf(t, s, e, "q"), func(k string) bool { return k == "meta" }); len(keys) > 0 {
		t.Errorf("of messages that are gone these keys are left: %q", keys)
	}
	checkForgotten(t, e, leased[0].Token)
}

func TestAtMostOnceClaim(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, state := range []engine.State{engine.Gone, engine.Scheduled, engine.Dead} { // Gone: any
		t.Run(state.String(), func(t *testing.T) {
			prefix := "prefix=" + state.String()
			e := openStore(t, s.URL(), prefix, "at_most_once=true")
			big := plain("q", "k")
			big.Body, big.Priority = make([]byte, 2*largeContent), new(uint32(5))
			if state == engine.Scheduled {
				big.Due.In = time.Hour
			}
			push(t, e, big)
			if state == engine.Dead {
				other := openStore(t, s.URL(), prefix)
				settle1(t, other, engine.Settlement{Token: lease1(t, other, "q").Token, Do: engine.Bury})
			}
			page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: cmp.Or(state, engine.Ready), Limit: 1})
			if err != nil || len(page.Messages) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			ref := engine.Ref{Queue: "q", ID: page.Messages[0].ID, IfState: state}
			l, err := e.Claim(t.Context(), ref, engine.Want{})
			if err != nil {
				t.Fatal(err)
			}
			if l.Key != "k" || len(l.Body) != len(big.Body) || l.State != engine.Leased {
				t.Errorf("claimed %+v", l.Info)
			}
			if keys := slices.DeleteFunc(keysOf(t, s, e, "q"), func(k string) bool { return k == "meta" }); len(keys) > 0 {
				t.Errorf("of a message that is gone these keys are left: %q", keys)
			}
			_, err = e.Claim(t.Context(), ref, engine.Want{})
			fails(t, err, engine.ErrNotFound)
			_, err = e.Claim(t.Context(), engine.Ref{Queue: "q", Key: "k"}, engine.Want{})
			fails(t, err, engine.ErrNotFound)
			if r := push(t, e, plain("q", "k"))[0]; r.Outcome != engine.Created {
				t.Errorf("the key is not free: %+v", r)
			}
			checkForgotten(t, e, l.Token)
		})
	}
}

// checkForgotten settles a message that is not there any more in every way.
func checkForgotten(t *testing.T, e *Engine, token string) {
	t.Helper()
	for range 2 {
		if r := settle1(t, e, engine.Settlement{Token: token, Do: engine.Ack}); r.Err != nil || r.State != engine.Gone || r.Queue != "q" {
			t.Errorf("ack: %+v", r)
		}
	}
	now := engine.When{}
	for _, do := range []engine.Action{engine.Retry, engine.Snooze, engine.Release, engine.Bury} {
		r := settle1(t, e, engine.Settlement{Token: token, Do: do, When: &now})
		fails(t, r.Err, engine.ErrLeaseLost, "at_most_once", "deleted when it was taken")
		if r.Queue != "q" {
			t.Errorf("%s: it is told of the queue %q", do, r.Queue)
		}
	}
	// A worker that renews its lease goes on with its work.
	before := time.Now()
	r := settle1(t, e, engine.Settlement{Token: token, Do: engine.Extend, TTR: time.Hour})
	if r.Err != nil || r.State != engine.Leased || r.Until.Before(before.Add(time.Hour-time.Second)) {
		t.Errorf("extend: %+v", r)
	}
	if r := settle1(t, e, engine.Settlement{Token: "x", Do: engine.Ack}); engine.Code(r.Err) != "lease_lost" {
		t.Errorf("ack of a token that is none: %+v", r)
	}
}

// TestAtMostOnceLeavesNothingToOthers: neither Close nor a lapse brings a message back.
func TestAtMostOnceLeavesNothingToOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	once := openURL(t, s.URL(), "at_most_once=true")
	m := plain("q", "k")
	m.TTR = time.Millisecond
	push(t, once, m)
	lease1(t, once, "q")
	if err := once.Close(); err != nil {
		t.Fatal(err)
	}
	if all := leaseAll(t, openStore(t, s.URL()), "q"); len(all) != 0 {
		t.Errorf("leased again: %+v", all)
	}
}
