package redisengine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// damages are what somebody may do to the entry of a message in a hash of a shard.
var damages = map[string]func(s *redistest.Server, hash, id string){
	"deleted":     func(s *redistest.Server, hash, id string) { s.Do("HDEL", hash, id) },
	"emptied":     func(s *redistest.Server, hash, id string) { s.Do("HSET", hash, id, "") },
	"overwritten": func(s *redistest.Server, hash, id string) { s.Do("HSET", hash, id, "garbage") },
	"overwritten with much": func(s *redistest.Server, hash, id string) {
		s.Do("HSET", hash, id, strings.Repeat("garbage", 100))
	},
	"overwritten with zeroes": func(s *redistest.Server, hash, id string) {
		s.Do("HSET", hash, id, strings.Repeat("\x00", 200))
	},
	"cut short": func(s *redistest.Server, hash, id string) {
		m := s.Do("HGET", hash, id)
		text, _ := m.ToString() // else it is emptied
		s.Do("HSET", hash, id, text[:len(text)*2/3])
	},
}

// damaged is a shard in which one message of five is damaged, the third of them.
type damaged struct {
	*testing.T
	e      *Engine
	s      *redistest.Server
	clock  *enginetest.Clock
	ids    []engine.ID
	leased map[engine.ID]string // tokens
}

const spoilt = 2

func (d *damaged) ref() engine.Ref { return engine.Ref{Queue: "q", ID: d.ids[spoilt]} }

// key is the name of a key of the shard.
func (d *damaged) key(name string) string {
	return d.e.queue("q").shards[0].keys[slices.Index(keyNames[:], name)]
}

// damage damages the message's entry in a hash.
func (d *damaged) damage(how, hash string) { damages[how](d.s, d.key(hash), member(d.ids[spoilt])) }

// kinds are messages that are kept in different ways.
var kinds = map[string]func(m *engine.Message){
	"usual":    func(*engine.Message) {},
	"rare":     func(m *engine.Message) { m.Priority = new(uint32(5)) },
	"expiring": func(m *engine.Message) { m.ExpireAfter = time.Hour },
	"large":    func(m *engine.Message) { m.Body = make([]byte, 2*largeContent) },
}

// newDamaged pushes messages of a kind, and leases them for half an hour if lease is
// set.
func newDamaged(t *testing.T, s *redistest.Server, kind string, lease bool) *damaged {
	t.Helper()
	d := &damaged{
		T: t, e: openStore(t, s.URL(), "prefix="+freshPrefix(), "shards=1"), s: s,
		clock: enginetest.NewClock(), leased: make(map[engine.ID]string),
	}
	d.e.stopped = d.clock.Now
	var msgs []engine.Message
	for i := range 5 {
		m := plain("q", fmt.Sprint("key", i))
		m.TTR = 30 * time.Minute
		kinds[kind](&m)
		msgs = append(msgs, m)
	}
	for _, r := range push(t, d.e, msgs...) {
		d.ids = append(d.ids, r.ID)
	}
	if lease {
		for _, l := range leaseAll(t, d.e, "q") {
			d.leased[l.ID] = l.Token
		}
		if len(d.leased) != len(d.ids) {
			t.Fatalf("leased %d of %d", len(d.leased), len(d.ids))
		}
	}
	return d
}

// othersCome fails the test unless all the other messages are leased, and acked, and
// whoever waits for more then does not spin.
func (d *damaged) othersCome() {
	d.Helper()
	came := make(map[engine.ID]bool)
	var g engine.Granted
	var now time.Time
	for range 20 {
		grant, err := d.e.Lease(d.Context(), []engine.Want{{Queue: "q", Max: 2}})
		if err == nil {
			err = grant.Queues[0].Err
		}
		if err != nil {
			d.Fatalf("lease: %v", err)
		}
		g, now = grant.Queues[0], grant.Now
		for _, l := range g.Messages {
			came[l.ID] = true
			if r := settle1(d, d.e, engine.Settlement{Token: l.Token, Do: engine.Ack}); r.Err != nil {
				d.Errorf("ack of %v: %v", l.ID, r.Err)
			}
		}
		d.clock.Advance(10 * time.Millisecond)
	}
	if g.More || len(g.Messages) > 0 || !g.NextDue.IsZero() && g.NextDue.Before(now.Add(time.Second)) {
		d.Errorf("in the end, at %v, there is still %+v", now, g)
	}
	for i, id := range d.ids {
		if !came[id] && i != spoilt {
			d.Errorf("message %d of %d did not come", i, len(d.ids))
		}
	}
}

// clear fails the test unless a call has ended well, or with an error that says what is
// wrong.
func (d *damaged) clear(what string, err error) {
	d.Helper()
	switch code := engine.Code(err); {
	case err == nil, code != "internal" && code != "unavailable":
	case strings.HasPrefix(err.Error(), "tarry: ") && (strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "WRONGTYPE")):
	default:
		d.Errorf("%s: %v", what, err)
	}
}

// clearly makes every call on the damaged message, each of which must end clearly.
func (d *damaged) clearly() {
	d.Helper()
	ctx, byKey := d.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint("key", spoilt)}
	for _, ref := range []engine.Ref{d.ref(), byKey} {
		_, err := d.e.Get(ctx, ref)
		d.clear("get", err)
		_, err = d.e.Reschedule(ctx, ref, engine.When{})
		d.clear("reschedule", err)
		_, err = d.e.Claim(ctx, ref, engine.Want{})
		d.clear("claim", err)
		for state := engine.Scheduled; state <= engine.Dead; state++ {
			ref.IfState = state
			_, err = d.e.Claim(ctx, ref, engine.Want{})
			d.clear("claim of "+state.String(), err)
		}
	}
	_, err := d.e.Peek(ctx, []string{"q"})
	d.clear("peek", err)
	_, err = d.e.Find(ctx, d.ids)
	d.clear("find", err)
	for _, policy := range []engine.Conflict{engine.Reject, engine.Keep, engine.KeepDue, engine.Rearm} {
		m := plain("q", byKey.Key)
		m.OnConflict = policy
		r, err := d.e.Push(ctx, []engine.Message{m})
		if d.clear("push", err); err == nil {
			d.clear("push "+policy.String(), r[0].Err)
		}
	}
	for state := engine.Scheduled; state <= engine.Dead; state++ {
		_, err := d.e.List(ctx, engine.ListQuery{Queue: "q", State: state, Limit: 100, Body: true})
		d.clear("list "+state.String(), err)
	}
	_, err = d.e.Queue(ctx, "q")
	d.clear("queue", err)
	_, err = d.e.Redrive(ctx, "q", []engine.ID{d.ref().ID}, 0)
	d.clear("redrive", err)
}

// TestDamageStopsNoOther spoils one message among others in every way.
func TestDamageStopsNoOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for how := range damages {
		for kind := range kinds {
			t.Run("waiting/"+kind+"/"+how, func(t *testing.T) {
				d := newDamaged(t, s, kind, false)
				d.damage(how, "msg")
				d.othersCome()
			})
			t.Run("released/"+kind+"/"+how, func(t *testing.T) {
				d := newDamaged(t, s, kind, true)
				for _, token := range d.leased {
					if r := settle1(t, d.e, engine.Settlement{Token: token, Do: engine.Release}); r.Err != nil {
						t.Fatal(r.Err)
					}
				}
				d.damage(how, "state")
				d.othersCome()
			})
			for _, hash := range []string{"msg", "state"} {
				t.Run("leased/"+kind+"/"+hash+"/"+how, func(t *testing.T) {
					d := newDamaged(t, s, kind, true)
					d.damage(how, hash)
					d.clock.Advance(45 * time.Minute) // the leases lapse
					d.othersCome()
				})
			}
		}
	}
}

// TestDamageHidesNoOther: what is first is a message that can be leased, or the damaged one,
// which the next lease takes away.
func TestDamageHidesNoOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for how := range damages {
		for kind := range kinds {
			t.Run(kind+"/"+how, func(t *testing.T) {
				d := newDamaged(t, s, kind, false)
				d.damage(how, "msg")
				var came []engine.ID
				for range 2 * len(d.ids) {
					s.Do("CONFIG", "SET", "min-replicas-to-write", "1")
					unwritten := peek1(t, d.e, "q")
					s.Do("CONFIG", "SET", "min-replicas-to-write", "0")
					first := peek1(t, d.e, "q")
					if id := unwritten.ID; id != first.ID && id != d.ids[spoilt] && (id != 0 || len(came) > 0) {
						t.Errorf("%v is first, and %v where nothing can be written", first.ID, id)
					}
					g := enginetest.MustLease(t, d.e, "q", 1)
					if first.ID == 0 && len(g.Messages) == 0 {
						break
					}
					switch {
					case len(g.Messages) == 1 && first.ID == g.Messages[0].ID && first.State == engine.Ready:
					case len(g.Messages) == 0 && first.ID == d.ids[spoilt]:
					default:
						t.Fatalf("%v is first, leased %+v", first.ID, g.Messages)
					}
					if first.ID != d.ids[spoilt] {
						came = append(came, first.ID)
					}
				}
				if others := slices.Delete(slices.Clone(d.ids), spoilt, spoilt+1); !slices.Equal(came, others) {
					t.Errorf("%v were first, not %v", came, others)
				}
			})
		}
	}
}

// TestDamageIsTold: what cannot be done to a damaged message is refused clearly.
func TestDamageIsTold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for how := range damages {
		for _, lease := range []bool{false, true} {
			for _, hash := range []string{"msg", "state", "body"} {
				if !lease && hash == "state" {
					continue // there is none yet
				}
				t.Run(fmt.Sprintf("%s/leased-%v/%s", hash, lease, how), func(t *testing.T) {
					kind := "usual"
					if hash == "body" {
						kind = "large"
					}
					d := newDamaged(t, s, kind, lease)
					d.damage(how, hash)
					d.clearly()
				})
			}
		}
	}
}

// TestDamageOfALeaseHarmsNoOther: settling it ends somehow, and others settle beside it.
func TestDamageOfALeaseHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for how := range damages {
		for _, hash := range []string{"msg", "state"} {
			for do := engine.Ack; do <= engine.Extend; do++ {
				t.Run(do.String()+"/"+hash+"/"+how, func(t *testing.T) {
					d := newDamaged(t, s, "usual", true)
					d.damage(how, hash)
					var all []engine.Settlement
					for _, id := range d.ids {
						all = append(all, engine.Settlement{Token: d.leased[id], Do: do, When: &engine.When{}, Priority: new(uint32(7))})
					}
					settled, err := d.e.Settle(t.Context(), all)
					if err != nil {
						t.Fatal(err)
					}
					for i, r := range settled {
						if i == spoilt {
							d.clear(do.String(), r.Err)
						} else if r.Err != nil {
							t.Errorf("%v beside it: %v", do, r.Err)
						}
					}
				})
			}
		}
	}
}

// TestDamageCanBeCancelled, by its id and its key, so that there is a way to be rid of
// it.
func TestDamageCanBeCancelled(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for how := range damages {
		t.Run(how, func(t *testing.T) {
			d := newDamaged(t, s, "usual", false)
			d.damage(how, "msg")
			errs, err := d.e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "key0"}, d.ref(), {Queue: "q", Key: "key1"}})
			if err != nil {
				t.Fatal(err)
			}
			d.clear("cancel", errs[1])
			if errs[0] != nil || errs[2] != nil {
				t.Errorf("cancels beside it: %v, %v", errs[0], errs[2])
			}
			n, err := d.e.Purge(t.Context(), "q", engine.PurgeDead)
			if err != nil || n < 2 {
				t.Errorf("purged %d, %v", n, err)
			}
		})
	}
}

// TestDamageOfTheKeys: a shard key of the wrong type is reported, too.
func TestDamageOfTheKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, name := range keyNames {
		t.Run(name, func(t *testing.T) {
			d := newDamaged(t, s, "rare", true)
			s.Do("SET", d.key(name), "garbage")
			grant, err := d.e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
			if err != nil {
				t.Fatal(err)
			}
			d.clear("lease", grant.Queues[0].Err)
			d.clearly()
		})
	}
}

// TestDamagedFailuresAreReplaced: the next failure takes the place of damaged ones.
func TestDamagedFailuresAreReplaced(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, redistest.Start(t), "usual", true)
	settle1(t, d.e, engine.Settlement{Token: d.leased[d.ref().ID], Do: engine.Retry, When: &engine.When{}, Reason: "why"})
	m := d.s.Do("HGET", d.key("state"), member(d.ref().ID))
	past, err := m.ToString()
	if err != nil || !strings.HasSuffix(past, "\x03why") {
		t.Fatalf("the past is %q, %v", past, err)
	}
	d.s.Do("HSET", d.key("state"), member(d.ref().ID), strings.TrimSuffix(past, "\x03why")+"\x04why")
	if all := leaseAll(t, d.e, "q"); len(all) != 0 {
		t.Fatalf("leased %+v", all)
	}
	d.clock.Advance(45 * time.Minute) // all leases lapse
	if all := leaseAll(t, d.e, "q"); len(all) != len(d.ids) {
		t.Fatalf("leased %d of %d", len(all), len(d.ids))
	}
	if i, err := d.e.Get(t.Context(), d.ref()); err != nil || len(i.Failures) != 1 || i.LastError != engine.Lapsed {
		t.Errorf("%v, %+v", err, i)
	}
}
