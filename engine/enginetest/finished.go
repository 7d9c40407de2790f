package enginetest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// listing makes the bed's queue list finished messages.
func (b *bed) listing(s engine.Settings) {
	b.Helper()
	c := b.caps
	b.need("History", c.History)
	b.need("to show and change finished messages", c.Get && c.List && c.Range && c.Cancel && c.Reschedule && c.Failures && c.Workers)
	if s.History == 0 {
		s.History = 24 * long
	}
	b.configure(s)
}

// by returns the name of the canceller of a message.
func (b *bed) by(ref engine.Ref) string { return cmp.Or(b.h.By, ref.By) }

// past fails the test unless exactly these finished messages are listed, in this order.
func (b *bed) past(want ...engine.ID) []engine.Info {
	b.Helper()
	got := b.listed(engine.Finished)
	b.sameIDs("finished", infoIDs(got), want)
	return got
}

// listedAs fails the test unless a finished message is listed and found, and with these values.
func (b *bed) listedAs(want engine.Info) {
	b.Helper()
	for _, ref := range []engine.Ref{b.id(want.ID), b.key(want.Key)} {
		if want.Key == "" && ref.ID == 0 {
			continue
		}
		got := b.get(ref)
		got.Forgotten = want.Forgotten
		if problem := sameInfo(got, want); problem != "" {
			b.Fatalf("%+v: %s", ref, problem)
		}
	}
}

// acked pushes and acks a message.
func (b *bed) acked(key string) engine.ID {
	b.Helper()
	r := b.push(b.msg(key, dueNow))
	b.ack(b.leaseOf(r).Token)
	return r.ID
}

var finishedTests = []test{
	{"an ack tells when, by whom, and after which failures", func(b *bed) {
		b.listing(engine.Settings{})
		m := b.msg("k", dueNow)
		m.Backoff = []time.Duration{time.Millisecond}
		r := b.push(m)
		l := b.lease1(0)
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, Reason: "no"})
		b.pass(1)
		g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 1, Worker: "w-1"}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			b.Fatalf("%v, %+v", err, g)
		}
		second := g.Queues[0].Messages[0]
		live := b.get(b.id(r.ID))
		if second.Started.IsZero() || !live.Started.Equal(second.Started) || second.Started.After(g.Now) || second.Started.Before(second.Due.Truncate(time.Millisecond)) {
			b.Fatalf("leased since %v, shown since %v, now %v", second.Started, live.Started, g.Now)
		}
		b.pass(1)
		b.ack(second.Token)
		i := b.get(b.id(r.ID))
		if i.Ended.Before(second.Started) || len(i.Failures) != 1 {
			b.Fatalf("%+v", i)
		}
		b.listedAs(engine.Info{
			ID: r.ID, Queue: b.queue, Key: m.Key, State: engine.Finished, Due: second.Due, Created: live.Created, Attempt: 2,
			LastError: "no", Failures: live.Failures, Worker: "w-1", Started: second.Started, Ending: engine.Acked, Ended: i.Ended,
		})
		b.past(r.ID)
		b.is(b.cancel(b.id(r.ID)), engine.ErrNotFound)
		b.lost(second.Token)
	}},
	{"a cancel and an expiry", func(b *bed) {
		b.needClock()
		b.need("Expiry", b.caps.Expiry)
		b.listing(engine.Settings{})
		cancelled := b.push(b.msg("", dueLater))
		b.is(b.cancel(b.id(cancelled.ID)), nil)
		m := b.msg("late", dueNow)
		m.ExpireAfter = b.unit
		expired := b.push(m)
		b.pass(2)
		if i := b.get(b.id(expired.ID)); i.State != engine.Finished || i.Ending != engine.Expired || !i.Ended.Equal(expired.Due.Add(b.unit)) {
			b.Fatalf("%+v", i)
		}
		b.none("it has expired")
		all := b.past(cancelled.ID, expired.ID)
		if i := all[0]; i.Ending != engine.Cancelled || i.Attempt != 0 || i.Worker != b.h.By || !i.Started.IsZero() {
			b.Fatalf("%+v", i)
		}
	}},
	{"a cancel tells by whom, not whose lease was before", func(b *bed) {
		b.listing(engine.Settings{})
		m := b.msg("", dueNow)
		m.Backoff = []time.Duration{time.Millisecond}
		var refs []engine.Ref
		for range 2 {
			b.push(m)
			g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 1, Worker: "w-1"}})
			if err != nil || len(g.Queues[0].Messages) != 1 {
				b.Fatalf("%v, %+v", err, g)
			}
			l := g.Queues[0].Messages[0]
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &dueLater, Reason: "no"})
			refs = append(refs, b.id(l.ID))
		}
		refs[0].By = "ann"
		for i, by := range []string{"", "bob", "bob", strings.Repeat("é", engine.MaxWorkerBytes/2), "ann", ""} {
			m := b.msg("", dueLater)
			if b.caps.Keys {
				m.Key = fmt.Sprint(i)
			}
			ref := b.id(b.push(m).ID)
			if i%2 == 0 && b.caps.Keys {
				ref = b.key(m.Key)
			}
			ref.By = by
			refs = append(refs, ref)
		}
		gone := b.id(1 << 62)
		gone.By = "nobody"
		refs = append(refs[:3], append([]engine.Ref{gone}, refs[3:]...)...)
		errs, err := b.e.Cancel(b.Context(), refs)
		if err != nil || len(errs) != len(refs) {
			b.Fatalf("%v, %d results", err, len(errs))
		}
		for i, ref := range refs {
			if ref.By == gone.By {
				b.is(errs[i], engine.ErrNotFound)
				continue
			}
			b.is(errs[i], nil)
			if got := b.get(ref); got.Ending != engine.Cancelled || got.Worker != b.by(ref) || !got.Started.IsZero() {
				b.Fatalf("cancelled by %q: %+v", ref.By, got)
			}
		}
	}},
	{"it holds no key, and a look-up finds what ended last", func(b *bed) {
		b.needClock()
		b.need("Keys", b.caps.Keys)
		b.listing(engine.Settings{})
		first := b.acked("k")
		b.pass(1)
		dead := b.deadOnes("k")[0]
		if i := b.get(b.key("k")); i.ID != dead {
			b.Fatalf("%+v", i)
		}
		b.pass(1)
		second := b.acked("k")
		if i := b.get(b.key("k")); i.ID != second || i.State != engine.Finished || !i.Forgotten.IsZero() {
			b.Fatalf("%+v", i)
		}
		live := b.push(b.msg("k", dueLater))
		if i := b.get(b.key("k")); i.ID != live.ID {
			b.Fatalf("%+v", i)
		}
		b.past(first, second)
		for _, id := range []engine.ID{first, second} {
			b.is(b.cancel(b.id(id)), engine.ErrNotFound)
			_, err := b.e.Reschedule(b.Context(), b.id(id), dueNow)
			b.is(err, engine.ErrNotFound)
		}
		b.past(first, second)
	}},
	{"a remembered key shows both", func(b *bed) {
		b.needRemember()
		b.listing(engine.Settings{})
		r := b.handled("k", long)
		if i := b.get(b.key("k")); i.ID != r.ID || i.Started.IsZero() || i.Attempt != 1 || !i.Forgotten.Equal(i.Ended.Add(long)) {
			b.Fatalf("%+v", i)
		}
		b.is(b.tryPush(b.msg("k", dueNow)).Err, engine.ErrExists)
	}},
	{"history ends on an instant", func(b *bed) {
		b.needClock()
		b.listing(engine.Settings{History: 10 * b.unit})
		id := b.acked("k")
		ended := b.get(b.id(id)).Ended
		b.h.Clock.Set(ended.Add(10*b.unit - time.Millisecond))
		b.past(id)
		b.h.Clock.Set(ended.Add(10 * b.unit))
		b.past()
		b.absent(b.id(id))
		if b.caps.Keys {
			b.absent(b.key("k"))
		}
	}},
	{"of more than history_max the oldest go", func(b *bed) {
		b.need("a queue in one part", !b.caps.Shares)
		b.listing(engine.Settings{HistoryMax: 20})
		var all []engine.ID
		for i := range 50 {
			all = append(all, b.acked(fmt.Sprint(i)))
		}
		b.soon("the oldest to go", func() bool {
			b.none("all are acked")
			got := infoIDs(b.listed(engine.Finished))
			if len(got) < 20 || len(got) > 50 {
				b.Fatalf("%d listed", len(got))
			}
			b.sameIDs("the newest", got, all[50-len(got):])
			return len(got) == 20
		})
		b.absent(b.id(all[0]))
	}},
	{"many whose time is over are counted no more", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.listing(engine.Settings{History: 5 * b.unit})
		const n = 1300 // more than an engine drops at once
		b.finishMany(n, 0)
		if q := b.counts(c, 0, 0, 0, 0); b.h.Clock != nil && q.History != n || q.History > n || q.Finished != 0 {
			b.Fatalf("%+v", q)
		}
		b.pass(6)
		b.past()
		b.soon("those whose time is over to be counted no more", func() bool {
			b.none("all are gone") // touches the queue
			return b.counts(c, 0, 0, 0, 0).History == 0
		})
	}},
	{"without a history nothing is listed", func(b *bed) {
		b.listing(engine.Settings{History: engine.Never})
		id := b.acked("k")
		b.absent(b.id(id))
		b.listing(engine.Settings{})
		b.past()
		b.past(b.acked("k"))
	}},
	{"pages, ranges and the reverse", func(b *bed) {
		b.needClock()
		b.listing(engine.Settings{})
		var all []engine.ID
		var at []time.Time
		for i := range 7 {
			all = append(all, b.acked(fmt.Sprint(i)))
			at = append(at, b.now())
			b.pass(1)
		}
		l := b.e.(engine.Lister)
		var got []engine.ID
		for q := (engine.ListQuery{Queue: b.queue, State: engine.Finished, Limit: 2, Newest: true, From: at[1], To: at[6]}); ; {
			page, err := l.List(b.Context(), q)
			b.is(err, nil)
			got = append(got, infoIDs(page.Messages)...)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		b.sameIDs("newest first", got, []engine.ID{all[5], all[4], all[3], all[2], all[1]})
	}},
	{"a purge empties it only when asked, a redrive skips it", func(b *bed) {
		p := optional[engine.Purger](b, "Purge", b.caps.Purge)
		b.listing(engine.Settings{})
		id := b.acked("k")
		_, err := p.Purge(b.Context(), b.queue, engine.PurgeDead)
		b.is(err, nil)
		b.past(id)
		if b.caps.Redrive {
			r, err := b.e.(engine.Redriver).Redrive(b.Context(), b.queue, []engine.ID{id}, 0)
			if err != nil || r.Skipped != 1 {
				b.Fatalf("%v, %+v", err, r)
			}
		}
		n, err := p.Purge(b.Context(), b.queue, engine.PurgeFinished)
		if err != nil || n != 1 {
			b.Fatalf("%v, %d purged", err, n)
		}
		b.past()
		b.absent(b.id(id))
	}},
	{"a queue that only lists finished ones is listed", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.listing(engine.Settings{})
		b.acked(strings.Repeat("k", engine.MaxKeyBytes))
		page, _, err := c.Queues(b.Context(), b.queue[:len(b.queue)-1], 1)
		if err != nil || len(page) != 1 || page[0].Queue != b.queue || page[0].History != 1 {
			b.Fatalf("%v, %+v", err, page)
		}
	}},
	{"they outlive a reopening", func(b *bed) {
		b.need("Reopen", b.h.Reopen != nil && b.caps.Durable)
		b.listing(engine.Settings{})
		id := b.acked("k")
		want := b.get(b.id(id))
		b.pass(1)
		ref := b.id(b.push(b.msg("", dueLater)).ID)
		ref.By = "ann"
		b.is(b.cancel(ref), nil)
		cancelled := b.get(ref)
		b.e = b.h.Reopen(b.T, b.e)
		b.listedAs(want)
		b.listedAs(cancelled)
		b.past(id, ref.ID)
	}},
}
