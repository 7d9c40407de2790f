package enginetest

import (
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// peek returns what comes first in each queue.
func (b *bed) peek(queues ...string) []engine.Info {
	b.Helper()
	first, err := optional[engine.Peeker](b, "Peek", b.caps.Peek).Peek(b.Context(), queues)
	if err != nil || len(first) != len(queues) {
		b.Fatalf("peek: %v, %d results for %d queues", err, len(first), len(queues))
	}
	return first
}

// isFirst fails the test unless the message comes first in the bed's queue; 0: none does.
func (b *bed) isFirst(id engine.ID) {
	b.Helper()
	i := b.peek(b.queue)[0]
	if i.ID != id || id != 0 && (i.State != engine.Ready || i.Queue != b.queue) || id == 0 && i.Queue != "" {
		b.Fatalf("%+v is first, not id %v", i, id)
	}
}

// find returns the queues of messages.
func (b *bed) find(ids ...engine.ID) []string {
	b.Helper()
	queues, err := optional[engine.Finder](b, "Find", b.caps.Find).Find(b.Context(), ids)
	if err != nil {
		b.Fatalf("find: %v", err)
	}
	return queues
}

var peekTests = []test{
	{"what is shown is leased next", func(b *bed) {
		b.need("Peek", b.caps.Peek)
		base := b.now().Add(-time.Hour).Truncate(time.Second)
		const n = 12
		for i := range n {
			m := b.msg("", engine.When{At: base.Add(time.Duration(i*5%4) * time.Minute)})
			m.Priority = new(uint32(i % 3))
			m.Terms = b.able(m.Terms)
			b.push(m)
		}
		for range n {
			i := b.peek(b.queue)[0]
			b.isFirst(i.ID) // looking changes nothing
			if l := b.lease1(0); l.ID != i.ID || l.Attempt != i.Attempt+1 || !l.Due.Equal(i.Due) || l.Priority != i.Priority || l.TTR != i.TTR {
				b.Fatalf("%+v was first, %+v is leased", i, l.Info)
			}
		}
		b.isFirst(0)
	}},
	{"only what is ready, a lapsed one too", func(b *bed) {
		b.need("Peek", b.caps.Peek)
		b.push(b.msg("", dueLater))
		b.isFirst(0)
		b.deadOnes("")
		b.push(b.msg("", dueNow))
		l := b.lease1(b.unit)
		b.isFirst(0)
		b.pass(1)
		b.isFirst(l.ID)
		b.ack(l.Token)
		b.isFirst(0)
	}},
	{"what has become due, and what has not expired", func(b *bed) {
		b.need("Peek", b.caps.Peek)
		b.need("Expiry", b.caps.Expiry)
		m := b.msg("", dueNow)
		m.ExpireAfter = b.unit
		brief := b.push(m)
		b.isFirst(brief.ID)
		next := b.push(b.msg("", b.in(1)))
		b.pass(2)
		b.isFirst(next.ID)
	}},
	{"also of a paused queue, and of one that is held back", func(b *bed) {
		b.need("Peek", b.caps.Peek)
		r := b.push(b.msg("", dueNow))
		if b.caps.Pause {
			b.is(b.e.(engine.Pauser).Pause(b.Context(), b.queue, 0), nil)
			b.isFirst(r.ID)
			b.is(b.e.(engine.Pauser).Resume(b.Context(), b.queue), nil)
		}
		if b.caps.Settings && !b.caps.Shares {
			b.configure(engine.Settings{InFlight: 1, Rate: engine.MinRate, Burst: 1})
			b.lease1(0)
			r = b.push(b.msg("", dueNow))
			b.none("held back")
			b.isFirst(r.ID)
		}
	}},
	{"of each queue its own, in their order", func(b *bed) {
		b.need("Peek", b.caps.Peek)
		one, other := b.queue, queueName()
		a := b.push(b.msg("", dueNow))
		b.queue = other
		c := b.push(b.msg("", dueNow))
		first := b.peek(other, queueName(), one, other)
		b.sameIDs("first", infoIDs(first), []engine.ID{c.ID, 0, a.ID, c.ID})
		if len(b.peek()) > 0 {
			b.Fatal("of no queue something is shown")
		}
	}},
}

var findTests = []test{
	{"what is live or dead, in any queue", func(b *bed) {
		b.need("Find", b.caps.Find)
		var ids []engine.ID
		var want []string
		one := b.queue
		for _, queue := range []string{one, queueName()} {
			b.queue = queue
			buried := b.deadOnes("dead")[0]
			held := b.push(b.msg("held", dueNow)).ID
			b.lease1(0)
			lapsed := b.push(b.msg("lapsed", dueNow)).ID
			b.lease1(b.unit)
			b.pass(1)
			for _, id := range []engine.ID{buried, held, lapsed, b.push(b.msg("due", dueNow)).ID, b.push(b.msg("later", dueLater)).ID} {
				ids, want = append(ids, id), append(want, queue)
			}
		}
		ids, want = append(ids, ids[0]), append(want, one) // one twice
		if got := b.find(ids...); !slices.Equal(got, want) {
			b.Fatalf("%q, want %q", got, want)
		}
		if len(b.find()) > 0 {
			b.Fatal("of no message a queue is found")
		}
	}},
	{"nothing that has gone", func(b *bed) {
		b.need("Find", b.caps.Find)
		if b.caps.Settings && b.caps.History {
			b.configure(engine.Settings{History: time.Hour})
		}
		m := b.msg("acked", dueNow)
		m.Remember = time.Hour
		m.Terms = b.able(m.Terms)
		gone := []engine.ID{0, 1 << 62, b.push(m).ID}
		b.ack(b.lease1(0).Token)
		if b.caps.Cancel {
			r := b.push(b.msg("cancelled", dueNow))
			b.is(b.cancel(b.id(r.ID)), nil)
			buried := b.deadOnes("dropped")[0]
			b.is(b.cancel(b.id(buried)), nil)
			gone = append(gone, r.ID, buried)
		}
		if b.caps.Expiry {
			m := b.msg("expired", dueNow)
			m.ExpireAfter = b.unit
			gone = append(gone, b.push(m).ID)
			b.pass(2)
		}
		if b.caps.Purge {
			gone = append(gone, b.push(b.msg("purged", dueLater)).ID)
			_, err := b.e.(engine.Purger).Purge(b.Context(), b.queue, 0)
			b.is(err, nil)
		}
		stays := b.push(b.msg("stays", dueLater)).ID
		want := append(make([]string, len(gone)), b.queue)
		if got := b.find(append(gone, stays)...); !slices.Equal(got, want) {
			b.Fatalf("%q of %v, want %q", got, gone, want)
		}
	}},
	{"what a queue keeps no longer is not found", func(b *bed) {
		b.need("Find", b.caps.Find)
		b.configure(engine.Settings{DeadKeep: b.unit})
		buried := b.deadOnes("")[0]
		b.pass(2)
		if got := b.find(buried); got[0] != "" {
			b.Fatalf("in %q", got[0])
		}
	}},
}
