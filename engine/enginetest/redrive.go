package enginetest

import "github.com/tarryhq/tarry/engine"

// deadOnes buries a message per key, one after another, and returns their ids.
func (b *bed) deadOnes(keys ...string) []engine.ID {
	b.Helper()
	var all []engine.ID
	for i, key := range keys {
		if i > 0 {
			b.pass(1) // so that they die in this order
		}
		all = append(all, b.push(b.msg(key, dueNow)).ID)
		b.bury(b.lease1(0).Token, "why "+key)
	}
	return all
}

func (b *bed) redrive(limit int, ids ...engine.ID) engine.Redriven {
	b.Helper()
	r, err := b.e.(engine.Redriver).Redrive(b.Context(), b.queue, ids, limit)
	if err != nil {
		b.Fatalf("redrive: %v", err)
	}
	return r
}

var redriveTests = []test{
	{"a dead message becomes ready with attempt 0", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		id := b.deadOnes("k")[0]
		b.pass(1)
		before := b.now()
		if r := b.redrive(0, id); r != (engine.Redriven{Redriven: 1}) {
			b.Fatalf("%+v", r)
		}
		l := b.lease1(0)
		if l.ID != id || l.Attempt != 1 || l.LastError != "why k" || !l.Died.IsZero() || l.Due.Before(before.Truncate(b.caps.Precision)) {
			b.Fatalf("%+v", l.Info)
		}
		b.ack(l.Token)
	}},
	{"of two with a key the one that is named first", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		b.need("Keys", b.caps.Keys)
		all := b.deadOnes("k", "k")
		if r := b.redrive(0, all[1], all[0]); r != (engine.Redriven{Redriven: 1, Skipped: 1}) {
			b.Fatalf("%+v", r)
		}
		if l := b.lease1(0); l.ID != all[1] {
			b.Fatalf("%v is leased, of %v", l.ID, all)
		}
	}},
	{"the first ones by death, or all", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		all := b.deadOnes("", "", "", "")
		if r := b.redrive(2); r != (engine.Redriven{Redriven: 2}) {
			b.Fatalf("%+v", r)
		}
		for _, l := range b.leaseN(2, 0) {
			if l.ID != all[0] && l.ID != all[1] {
				b.Fatalf("%v is not among the first two of %v", l.ID, all)
			}
		}
		if r := b.redrive(0); r != (engine.Redriven{Redriven: 2}) {
			b.Fatalf("%+v", r)
		}
		b.leaseN(2, 0)
		if r := b.redrive(0); r != (engine.Redriven{}) {
			b.Fatalf("%+v", r)
		}
	}},
	{"two dead ones of one key: one comes back", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		b.need("Keys", b.caps.Keys)
		all := b.deadOnes("k", "k")
		if r := b.redrive(0); r != (engine.Redriven{Redriven: 1, Skipped: 1}) {
			b.Fatalf("%+v", r)
		}
		if l := b.lease1(0); l.ID != all[0] {
			b.Fatalf("%+v", l)
		}
	}},
	{"ids that are not dead here are skipped", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		dead := b.deadOnes("")[0]
		waits := b.push(b.msg("", dueLater)).ID
		if r := b.redrive(0, waits, 1<<62, dead, dead); r != (engine.Redriven{Redriven: 1, Skipped: 3}) {
			b.Fatalf("%+v", r)
		}
		b.queue = queueName()
		if r := b.redrive(0, dead); r != (engine.Redriven{Skipped: 1}) {
			b.Fatalf("%+v", r)
		}
	}},
	{"the token of one that lapsed dead ends", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		m := b.msg("k", dueNow)
		m.MaxAttempts = 1
		b.push(m)
		l := b.lease1(b.unit)
		b.pass(1)
		if r := b.redrive(0); r != (engine.Redriven{Redriven: 1}) {
			b.Fatalf("%+v", r)
		}
		b.lost(l.Token)
		b.lease1(0)
	}},
}
