package enginetest

import (
	"errors"
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// needWhole skips the test if each part of the store enforces its share of a limit.
func (b *bed) needWhole() {
	b.Helper()
	b.need("Settings", b.caps.Settings)
	b.need("to keep settings over the whole queue", !b.caps.Shares)
}

// unseen fails the test if any call still sees a dead message.
func (b *bed) unseen(id engine.ID) {
	b.Helper()
	if b.caps.Get {
		b.absent(b.id(id))
	}
	if b.caps.Cancel {
		b.is(b.cancel(b.id(id)), engine.ErrNotFound)
	}
	if b.caps.Redrive {
		if r := b.redrive(0, id); r != (engine.Redriven{Skipped: 1}) {
			b.Fatalf("%+v", r)
		}
	}
	if b.caps.List {
		for _, i := range b.listed(engine.Dead) {
			if i.ID == id {
				b.Fatalf("listed: %+v", i)
			}
		}
	}
}

// dead fails the test unless exactly these messages are dead. It first touches the queue:
// until then, dropped messages may be counted.
func (b *bed) dead(want ...engine.ID) {
	b.Helper()
	b.none("all are dead")
	if b.caps.List {
		b.sameIDs("dead", infoIDs(b.listed(engine.Dead)), want)
	}
	if b.caps.Count {
		b.counts(b.e.(engine.Counter), 0, 0, 0, len(want))
	}
	for _, id := range want {
		if b.caps.Get {
			b.state(b.id(id), engine.Dead, 1)
		}
	}
}

var deadKeepTests = []test{
	{"on an instant", func(b *bed) {
		b.needClock()
		b.need("Get", b.caps.Get)
		b.configure(engine.Settings{DeadKeep: b.unit})
		id := b.deadOnes("k")[0]
		died := b.state(b.id(id), engine.Dead, 1).Died
		b.h.Clock.Set(died.Add(b.unit))
		b.dead(id)
		b.h.Clock.Set(died.Add(b.unit + time.Millisecond))
		b.unseen(id)
		if b.caps.Keys {
			b.absent(b.key("k"))
		}
		b.dead()
	}},
	{"those that lapsed, too, from their deadline on", func(b *bed) {
		b.configure(engine.Settings{DeadKeep: 2 * b.unit})
		l := b.spent("k")
		b.pass(4)
		b.unseen(l.ID)
		b.lost(l.Token)
		b.dead()
	}},
	{"as long as can be said", func(b *bed) {
		b.configure(engine.Settings{DeadKeep: math.MaxInt64})
		all := b.deadOnes("a", "b")
		b.pass(2)
		b.dead(all...)
	}},
	{"dropped for their age they are not remembered", func(b *bed) {
		b.needRemember()
		b.configure(engine.Settings{DeadKeep: b.unit, Defaults: engine.Terms{Remember: long}})
		b.deadOnes("k")
		b.pass(2)
		b.none("it is gone")
		b.absent(b.key("k"))
	}},
	{"many that are gone are counted no more", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.buryAll(1300) // more than an engine drops at once
		b.configure(engine.Settings{DeadKeep: 3 * b.unit})
		b.pass(4)
		if b.caps.List {
			b.sameIDs("dead", infoIDs(b.listed(engine.Dead)), nil)
		}
		b.soon("those whose time is over to be counted no more", func() bool {
			b.none("all are dead")
			q, err := c.Queue(b.Context(), b.queue)
			b.is(err, nil)
			return q.Dead == 0
		})
	}},
	{"of more than dead_max those that died first go", func(b *bed) {
		b.needWhole()
		b.configure(engine.Settings{DeadMax: 2})
		all := b.deadOnes("a", "b", "c", "d")
		for _, id := range all[:2] {
			b.unseen(id)
		}
		b.dead(all[2:]...)
		b.configure(engine.Settings{DeadMax: 1})
		b.dead(all[3])
		b.unseen(all[2])
		b.configure(engine.Settings{})
		b.dead(append(all[3:], b.deadOnes("e", "f")...)...)
	}},
	{"of more than dead_max by any death", func(b *bed) {
		b.needWhole()
		b.configure(engine.Settings{DeadMax: 1})
		m := b.msg("retried", dueNow)
		m.MaxAttempts = 1
		first := b.push(m)
		b.settle(engine.Settlement{Token: b.leaseOf(first).Token, Do: engine.Retry})
		b.dead(first.ID)
		b.pass(1)
		l := b.spent("lapsed")
		b.none("it lapsed")
		b.dead(l.ID)
		b.unseen(first.ID)
		b.pass(1)
		last := b.deadOnes("buried")[0]
		b.lost(l.Token)
		b.dead(last)
	}},
	{"one that lapsed before the others died is gone at once", func(b *bed) {
		b.needWhole()
		b.configure(engine.Settings{DeadMax: 1})
		lapsing := b.msg("lapsing", dueNow)
		lapsing.MaxAttempts = 1
		b.push(lapsing)
		lost := b.lease1(b.unit)
		b.push(b.msg("", dueNow))
		buried := b.lease1(10 * b.unit)
		b.pass(3)
		b.bury(buried.Token, "x") // if the lapse is still unnoticed, this one dies first
		b.lost(lost.Token)
		b.unseen(lost.ID)
		b.dead(buried.ID)
	}},
	{"one that lapsed before the settings counts", func(b *bed) {
		b.needWhole()
		first := b.deadOnes("buried")[0]
		l := b.spent("lapsed")
		b.configure(engine.Settings{DeadMax: 1})
		b.unseen(first)
		b.dead(l.ID)
	}},
	{"of many more at once", func(b *bed) {
		b.needWhole()
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.buryAll(700)
		b.configure(engine.Settings{DeadMax: 3})
		b.soon("no more than dead_max to be dead", func() bool {
			b.none("all are dead")
			q, err := c.Queue(b.Context(), b.queue)
			b.is(err, nil)
			return q.Dead == 3
		})
	}},
	{"shares of dead_max keep about as many", func(b *bed) {
		b.need("Settings", b.caps.Settings)
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		b.configure(engine.Settings{DeadMax: 40})
		b.buryAll(300)
		b.none("all are dead")
		if q, err := c.Queue(b.Context(), b.queue); err != nil || q.Dead < 1 || q.Dead > 80 {
			b.Fatalf("%v, %+v", err, q)
		}
	}},
}

// buryAll makes n messages dead.
func (b *bed) buryAll(n int) {
	b.Helper()
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = b.msg("", dueNow)
	}
	b.pushEach(msgs)
	end := make([]engine.Settlement, n)
	for i, l := range b.leaseN(n, long) {
		end[i] = engine.Settlement{Token: l.Token, Do: engine.Bury}
	}
	settled, err := b.e.Settle(b.Context(), end)
	for _, s := range settled {
		err = errors.Join(err, s.Err)
	}
	b.is(err, nil)
}
