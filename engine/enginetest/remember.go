package enginetest

import (
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// needRemember skips the test unless the engine remembers keys and shows them.
func (b *bed) needRemember() {
	b.Helper()
	b.need("Remember", b.caps.Remember)
	b.need("Keys", b.caps.Keys)
	b.need("Get", b.caps.Get)
}

// fleeting returns a message whose key is remembered for the given time.
func (b *bed) fleeting(key string, due engine.When, remember time.Duration) engine.Message {
	m := b.msg(key, due)
	m.Remember = remember
	return m
}

// handled pushes and acks a message whose key is remembered for the given time.
func (b *bed) handled(key string, remember time.Duration) engine.PushResult {
	b.Helper()
	r := b.push(b.fleeting(key, dueNow, remember))
	b.ack(b.leaseOf(r).Token)
	return r
}

// finished fails the test unless the key is remembered for the message that r pushed.
func (b *bed) finished(r engine.PushResult, key string, how engine.Ending) engine.Info {
	b.Helper()
	i := b.get(b.key(key))
	want := engine.Info{
		ID: r.ID, Queue: b.queue, Key: key, State: engine.Finished, Due: i.Due,
		Ending: how, Ended: i.Ended, Forgotten: i.Forgotten,
	}
	if problem := sameInfo(i, want); problem != "" || i.Ended.IsZero() || !i.Forgotten.After(i.Ended) {
		b.Fatalf("%s: %+v", problem, i)
	}
	b.absent(b.id(r.ID))
	return i
}

// free fails the test unless a push of the key makes a message.
func (b *bed) free(key string) engine.PushResult {
	b.Helper()
	r := b.push(b.msg(key, dueNow))
	if r.Outcome != engine.Created || !r.State.Live() || r.Ending != 0 || !r.Ended.IsZero() {
		b.Fatalf("%+v", r)
	}
	return r
}

var rememberTests = []test{
	{"reject describes the finished one", func(b *bed) {
		b.needRemember()
		first := b.handled("k", long)
		i := b.finished(first, "k", engine.Acked)
		r := b.tryPush(b.msg("k", dueLater))
		b.is(r.Err, engine.ErrExists)
		b.describes(r, i, 0)
		b.hints(engine.ErrExists, r.Err, hintOf(engine.RefuseFinished(engine.Ref{}, i.Ending, i.Ended)))
		b.finished(first, "k", engine.Acked)
	}},
	{"the key is free when its time is over", func(b *bed) {
		b.needRemember()
		b.needClock()
		for _, swept := range []bool{false, true} {
			key := fmt.Sprint(swept)
			r := b.handled(key, b.unit)
			at := b.finished(r, key, engine.Acked).Forgotten
			b.h.Clock.Set(at.Add(-time.Millisecond))
			b.finished(r, key, engine.Acked)
			b.h.Clock.Set(at)
			if swept {
				b.none("nothing is left")
			}
			b.absent(b.key(key))
			b.ack(b.leaseOf(b.free(key)).Token)
		}
	}},
	{"a late ack leaves nothing where another holds the key", func(b *bed) {
		b.needRemember()
		m := b.fleeting("k", dueNow, long)
		m.MaxAttempts = 1
		b.push(m)
		l := b.lease1(b.unit)
		b.pass(1)
		next := b.push(b.msg("k", dueNow))
		b.ack(l.Token)
		if i := b.get(b.key("k")); i.ID != next.ID {
			b.Fatalf("%+v", i)
		}
		b.ack(b.leaseOf(next).Token)
		b.absent(b.key("k"))
	}},
	{"what a late settlement brings back forgets", func(b *bed) {
		b.needRemember()
		b.need("GiveBack", b.caps.GiveBack)
		old := b.spent("k")
		b.handled("k", long)
		b.settle(engine.Settlement{Token: old.Token, Do: engine.Release})
		if i := b.get(b.key("k")); i.ID != old.ID || i.State != engine.Ready {
			b.Fatalf("%+v", i)
		}
		b.ack(b.lease1(0).Token)
		b.absent(b.key("k"))
	}},
	{"a purge remembers nothing, and forgets only when asked", func(b *bed) {
		b.needRemember()
		p := optional[engine.Purger](b, "Purge", b.caps.Purge)
		r := b.handled("gone", long)
		b.deadOnes("dead")
		b.push(b.fleeting("live", dueLater, long))
		for _, c := range []struct {
			also engine.PurgeAlso
			want int64
		}{{0, 1}, {engine.PurgeDead, 1}, {engine.PurgeFinished, 1}, {engine.PurgeDead | engine.PurgeFinished, 0}} {
			b.finished(r, "gone", engine.Acked)
			if n, err := p.Purge(b.Context(), b.queue, c.also); err != nil || n != c.want {
				b.Fatalf("%v, %d purged, want %d with %b", err, n, c.want, c.also)
			}
			b.absent(b.key("live"))
			if c.also&engine.PurgeFinished != 0 {
				break
			}
		}
		b.absent(b.key("gone"))
		b.free("gone")
		if n, err := p.Purge(b.Context(), queueName(), engine.PurgeFinished|engine.PurgeDead); err != nil || n != 0 {
			b.Fatalf("%v, %d purged of an unknown queue", err, n)
		}
	}},
	{"a purge of many finished ones counts each", func(b *bed) {
		b.needRemember()
		p := optional[engine.Purger](b, "Purge", b.caps.Purge)
		const n = 1200
		b.finishMany(n, long)
		if got, err := p.Purge(b.Context(), b.queue, engine.PurgeFinished); err != nil || got != n {
			b.Fatalf("%v, %d purged, want %d", err, got, n)
		}
		b.free("7")
	}},
	{"they are counted, and no more when their time is over", func(b *bed) {
		b.needRemember()
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		const n = 1300 // more than an engine forgets at once
		b.finishMany(n, b.unit)
		r := b.handled("stays", long)
		if q := b.counts(c, 0, 0, 0, 0); q.Finished < 1 || q.Finished > n+1 || b.h.Clock != nil && q.Finished != n+1 {
			b.Fatalf("%+v", q)
		}
		b.pass(2)
		b.absent(b.key(fmt.Sprint(n - 1)))
		b.free(fmt.Sprint(n - 1))
		b.ack(b.lease1(0).Token)
		b.soon("those whose time is over to be counted no more", func() bool {
			b.none("all are gone") // touches the queue
			return b.counts(c, 0, 0, 0, 0).Finished == 1
		})
		b.finished(r, "stays", engine.Acked)
	}},
	{"a queue that only remembers is listed", func(b *bed) {
		b.needRemember()
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.handled("k", long)
		page, _, err := c.Queues(b.Context(), b.queue[:len(b.queue)-1], 1)
		if err != nil || len(page) != 1 || page[0].Queue != b.queue || page[0].Finished != 1 {
			b.Fatalf("%v, %+v", err, page)
		}
		b.is(b.tryPush(b.msg("k", dueNow)).Err, engine.ErrExists)
	}},
	{"an atomic push meets it, and a failed one forgets nothing", func(b *bed) {
		b.needRemember()
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		first := b.handled("k", long)
		anew := b.msg("k", dueLater)
		anew.OnConflict = engine.Replace
		b.push(b.msg("held", dueLater))
		_, err := p.PushAtomic(b.Context(), []engine.Message{anew, b.msg("held", dueNow)})
		b.is(err, engine.ErrExists)
		i := b.finished(first, "k", engine.Acked)
		r, err := p.PushAtomic(b.Context(), []engine.Message{b.msg("other", dueNow), b.msg("k", dueNow)})
		b.is(err, engine.ErrExists)
		if len(r) == 2 {
			b.describes(r[1], i, 0)
		}
		b.none("nothing was kept")
		if r, err = p.PushAtomic(b.Context(), []engine.Message{anew}); err != nil || r[0].Outcome != engine.Created {
			b.Fatalf("%v, %+v", err, r)
		}
	}},
}

// describes fails the test unless a push's result describes a finished message.
func (b *bed) describes(r engine.PushResult, i engine.Info, o engine.Outcome) {
	b.Helper()
	if r.Outcome != o || r.ID != i.ID || !r.Due.Equal(i.Due) || r.State != engine.Finished || r.Ending != i.Ending || !r.Ended.Equal(i.Ended) {
		b.Fatalf("%+v does not tell of %+v", r, i)
	}
}

// finishMany pushes and acks n messages, whose keys are the numbers below n.
func (b *bed) finishMany(n int, remember time.Duration) {
	b.Helper()
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = b.fleeting(fmt.Sprint(i), dueNow, remember)
	}
	b.pushEach(msgs)
	acks := make([]engine.Settlement, n)
	for i, l := range b.leaseN(n, 0) {
		acks[i] = engine.Settlement{Token: l.Token, Do: engine.Ack}
	}
	settled, err := b.e.Settle(b.Context(), acks)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range settled {
		b.is(s.Err, nil)
	}
}
