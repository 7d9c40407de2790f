package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// needClaimIf skips the test unless the engine claims on condition of a state.
func (b *bed) needClaimIf() {
	b.Helper()
	b.need("ClaimIf", b.caps.Claim && b.caps.ClaimIf)
}

// tryClaim claims a message in a state.
func (b *bed) tryClaim(ref engine.Ref, s engine.State, w engine.Want) (engine.Lease, error) {
	b.Helper()
	return b.e.(engine.Claimer).Claim(b.Context(), in(ref, s), w)
}

// claim claims a message in a state, which must succeed, and checks the lease.
func (b *bed) claim(ref engine.Ref, s engine.State, w engine.Want) engine.Lease {
	b.Helper()
	l, err := b.tryClaim(ref, s, w)
	if err != nil {
		b.Fatalf("claim of what is %v: %v", s, err)
	}
	w.Max = 1
	if problem := b.checkGrant(b.now(), w, engine.Granted{Messages: []engine.Lease{l}}); problem != "" {
		b.Fatal(problem)
	}
	return l
}

var claimIfTests = []test{
	{"what is scheduled is due from now on, and its expiry stays", func(b *bed) {
		b.needClaimIf()
		m := b.msg("k", dueLater)
		m.ExpireAfter = long
		m.Terms = b.able(m.Terms)
		r := b.push(m)
		before := b.now()
		l := b.claim(b.id(r.ID), engine.Scheduled, engine.Want{TTR: time.Hour, Worker: "w"})
		if l.ID != r.ID || l.Attempt != 1 || string(l.Body) != "body of "+l.Key || l.Due.Before(before.Truncate(time.Millisecond)) ||
			!l.Expires.Equal(expires(r.Due, l.Policy)) || b.caps.Workers && l.Worker != "w" {
			b.Fatalf("%+v", l.Info)
		}
		b.none("claimed")
		if b.caps.Keys {
			b.is(b.tryPush(b.msg("k", dueNow)).Err, engine.ErrExists)
		}
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
		if again := b.lease1(0); again.ID != r.ID || !again.Due.Equal(l.Due) {
			b.Fatalf("leased %+v, was %+v", again.Info, l.Info)
		}
	}},
	{"by key, the live one", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.needClaimIf()
		r := b.push(b.msg("k", dueLater))
		l := b.claim(b.key("k"), engine.Scheduled, engine.Want{})
		if l.ID != r.ID {
			b.Fatalf("claimed %+v", l.Info)
		}
		b.bury(l.Token, "x")
		for s := engine.Scheduled; s <= engine.Dead; s++ {
			_, err := b.tryClaim(b.key("k"), s, engine.Want{})
			b.is(err, engine.ErrNotFound)
		}
	}},
	{"also from a paused queue", func(b *bed) {
		b.needClaimIf()
		p := optional[engine.Pauser](b, "Pause", b.caps.Pause)
		buried := b.deadOnes("dead")[0]
		due, later := b.push(b.msg("due", dueNow)), b.push(b.msg("later", dueLater))
		b.is(p.Pause(b.Context(), b.queue, 0), nil)
		for state, id := range map[engine.State]engine.ID{engine.Ready: due.ID, engine.Scheduled: later.ID, engine.Dead: buried} {
			l := b.claim(b.id(id), state, engine.Want{})
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
			_, err := b.e.(engine.Claimer).Claim(b.Context(), b.id(id), engine.Want{})
			b.is(err, engine.ErrNotDue)
		}
		b.none("paused")
		b.is(p.Resume(b.Context(), b.queue), nil)
		b.leaseN(3, 0)
	}},
	{"a dead one is live again, and its attempts count on", func(b *bed) {
		b.needClaimIf()
		m := b.msg("k", dueNow)
		m.MaxAttempts, m.ExpireAfter = 1, long
		m.Terms = b.able(m.Terms)
		r := b.push(m)
		b.bury(b.lease1(0).Token, "why")
		l := b.claim(b.id(r.ID), engine.Dead, engine.Want{})
		if l.ID != r.ID || l.Attempt != 2 || !l.Died.IsZero() || !l.Expires.IsZero() || !l.Due.Equal(r.Due) || l.LastError != "why" {
			b.Fatalf("%+v", l.Info)
		}
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, 1, 0)
		}
		if b.caps.Keys {
			b.is(b.tryPush(b.msg("k", dueNow)).Err, engine.ErrExists)
		}
		if b.caps.GiveBack {
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
			if l = b.lease1(0); l.Attempt != 2 {
				b.Fatalf("%+v", l.Info)
			}
		}
		if s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &dueNow, Reason: "again"}); s.State != engine.Dead {
			b.Fatalf("%+v of one whose attempts are used up", s)
		}
		if b.caps.Get && b.caps.Failures {
			b.haveFailed(b.get(b.id(r.ID)), "1  why", "2  again")
		}
	}},
	{"a dead one does not take a key from a live one, only from a memory", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.needClaimIf()
		buried := b.deadOnes("k")[0]
		next := b.msg("k", dueNow)
		next.Remember = time.Hour
		next.Terms = b.able(next.Terms)
		b.push(next)
		_, err := b.tryClaim(b.id(buried), engine.Dead, engine.Want{})
		b.hints(engine.ErrExists, err, hintOf(engine.RefuseTaken(engine.Ref{})))
		if b.caps.Get {
			b.state(b.id(buried), engine.Dead, 1)
		}
		l := b.lease1(0)
		_, err = b.tryClaim(b.id(buried), engine.Dead, engine.Want{})
		b.is(err, engine.ErrExists)
		b.ack(l.Token)
		b.claim(b.id(buried), engine.Dead, engine.Want{})
		if b.caps.Get {
			b.state(b.key("k"), engine.Leased, 2)
		}
	}},
	{"what lapsed is ready, or dead, and its old token is lost", func(b *bed) {
		b.needClaimIf()
		old := b.spent("")
		dead := b.claim(b.id(old.ID), engine.Dead, engine.Want{})
		if dead.Attempt != 2 || dead.LastError != engine.Lapsed {
			b.Fatalf("%+v", dead.Info)
		}
		b.lost(old.Token)
		b.ack(dead.Token)
		b.push(b.msg("", dueNow))
		old = b.lease1(b.unit)
		b.pass(1)
		if l := b.claim(b.id(old.ID), engine.Ready, engine.Want{}); l.Attempt != 2 {
			b.Fatalf("%+v", l.Info)
		}
		b.lost(old.Token)
	}},
	{"in another state it is stale, and stays as it was", func(b *bed) {
		b.needClaimIf()
		buried := b.deadOnes("")[0]
		b.push(b.msg("", dueNow))
		held := b.lease1(0)
		due, later := b.push(b.msg("", dueNow)), b.push(b.msg("", dueLater))
		for state, id := range map[engine.State]engine.ID{
			engine.Scheduled: later.ID, engine.Ready: due.ID, engine.Leased: held.ID, engine.Dead: buried,
		} {
			for want := engine.Scheduled; want <= engine.Dead; want++ {
				if want == state {
					continue
				}
				_, err := b.tryClaim(b.id(id), want, engine.Want{})
				b.hints(engine.ErrStale, err, hintOf(engine.RefuseState("", in(engine.Ref{}, want), state)))
			}
			if b.caps.Get && b.get(b.id(id)).State != state {
				b.Fatalf("%v became %v", state, b.get(b.id(id)).State)
			}
		}
		_, err := b.tryClaim(b.id(held.ID), engine.Leased, engine.Want{})
		b.hints(engine.ErrLeased, err)
		b.ack(held.Token)
		for s := engine.Scheduled; s <= engine.Dead; s++ {
			_, err = b.tryClaim(b.id(held.ID), s, engine.Want{})
			b.is(err, engine.ErrNotFound)
			_, err = b.tryClaim(engine.Ref{Queue: queueName(), ID: due.ID}, s, engine.Want{})
			b.is(err, engine.ErrNotFound)
		}
	}},
	{"a full queue has room for a dead one, but in_flight and rate hold", func(b *bed) {
		b.needClaimIf()
		b.needWhole()
		buried, other := b.deadOnes("a")[0], b.push(b.msg("b", dueLater))
		b.configure(engine.Settings{MaxPending: 1, InFlight: 1})
		l := b.claim(b.id(buried), engine.Dead, engine.Want{})
		_, err := b.tryClaim(b.id(other.ID), engine.Scheduled, engine.Want{})
		b.hints(engine.ErrLimit, err, hintOf(engine.RefuseClaim(engine.Ref{}, time.Time{})))
		b.bury(l.Token, "x")
		b.configure(engine.Settings{Rate: engine.MinRate, Burst: 1})
		b.claim(b.id(buried), engine.Dead, engine.Want{})
		_, err = b.tryClaim(b.id(other.ID), engine.Scheduled, engine.Want{})
		if b.is(err, engine.ErrLimit); untilOf(err).IsZero() {
			b.Fatalf("%v does not say until when", err)
		}
		if b.caps.Get {
			b.state(b.id(other.ID), engine.Scheduled, 0)
		}
	}},
	{"a claimed one survives", func(b *bed) {
		b.needClaimIf()
		b.need("RemoteLeases", b.caps.RemoteLeases)
		b.need("to reopen", b.h.Reopen != nil)
		buried := b.deadOnes("a", "b")
		later := []engine.PushResult{b.push(b.msg("c", dueLater)), b.push(b.msg("d", dueLater))}
		var remote []engine.Lease
		for i, w := range []engine.Want{{Remote: true}, {}} {
			for _, l := range []engine.Lease{b.claim(b.id(buried[i]), engine.Dead, w), b.claim(b.id(later[i].ID), engine.Scheduled, w)} {
				if w.Remote {
					remote = append(remote, l)
				}
			}
		}
		b.reopen()
		own := b.leaseN(2, 0) // those leases ended with the process
		for _, l := range own {
			if l.ID != buried[1] && l.ID != later[1].ID {
				b.Fatalf("leased %+v", l.Info)
			}
		}
		for _, l := range append(own, remote...) {
			b.ack(l.Token)
		}
	}},
}
