package enginetest

import (
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var listTests = []test{
	{"what does not change appears once while others come and go", func(b *bed) {
		lister := optional[engine.Lister](b, "List", b.caps.List)
		b.need("Cancel", b.caps.Cancel)
		base := b.now().Add(long).Truncate(time.Second)
		at := func(i int) engine.When { return engine.When{At: base.Add(time.Duration(i) * time.Second)} }
		for _, newest := range []bool{false, b.caps.Range} {
			b.queue = queueName()
			var stay, leave []engine.ID
			for i := range 20 {
				stay = append(stay, b.push(b.msg("", at(10*i))).ID)
				leave = append(leave, b.push(b.msg("", at(10*i+5))).ID)
			}
			if newest {
				slices.Reverse(leave)
			}
			n := 0
			got := infoIDs(b.list(lister, engine.ListQuery{Queue: b.queue, State: engine.Scheduled, Limit: 3, Newest: newest}, func() {
				if n < len(leave) {
					b.is(b.cancel(b.id(leave[n])), nil)
					b.push(b.msg("", at(7*n)))
				}
				n++
			}))
			for _, id := range stay {
				if seen := len(slices.DeleteFunc(slices.Clone(got), func(i engine.ID) bool { return i != id })); seen != 1 {
					b.Errorf("newest first %v: id %v appeared %d times", newest, id, seen)
				}
			}
		}
	}},
	{"an unknown queue is empty", func(b *bed) {
		lister := optional[engine.Lister](b, "List", b.caps.List)
		for state := engine.Scheduled; state <= engine.Dead; state++ {
			if p, err := lister.List(b.Context(), engine.ListQuery{Queue: b.queue, State: state, Limit: 10}); err != nil || len(p.Messages) != 0 || p.Next != "" {
				b.Errorf("%v: %v, %+v", state, err, p)
			}
		}
	}},
	{"a page of large bodies is short", func(b *bed) {
		lister := optional[engine.Lister](b, "List", b.caps.List)
		const n, size = 12, 1 << 20
		b.need("MaxBody of 1 MiB", b.caps.MaxBody == 0 || b.caps.MaxBody >= size)
		var want, got []engine.ID
		for i := range n {
			m := b.msg("", engine.When{In: long + time.Duration(i)*time.Second})
			m.Body = make([]byte, size)
			want = append(want, b.push(m).ID)
		}
		q := engine.ListQuery{Queue: b.queue, State: engine.Scheduled, Limit: n, Body: true}
		for len(got) < n {
			p, err := lister.List(b.Context(), q)
			if err != nil || len(p.Messages) == 0 || len(p.Messages)*size > engine.AnswerBytes+size {
				b.Fatalf("%v, %d messages of %d bytes in a page", err, len(p.Messages), size)
			}
			got = append(got, infoIDs(p.Messages)...)
			if q.After = p.Next; q.After == "" {
				break
			}
		}
		b.sameIDs("listed", got, want)
	}},
}

// list reads all pages of a list, and calls between (if not nil) between them.
func (b *bed) list(l engine.Lister, q engine.ListQuery, between func()) []engine.Info {
	b.Helper()
	var all []engine.Info
	for range 1000 {
		p, err := l.List(b.Context(), q)
		if err != nil || len(p.Messages) > q.Limit {
			b.Fatalf("list: %v, %d messages for limit %d", err, len(p.Messages), q.Limit)
		}
		for _, i := range p.Messages {
			if i.State != q.State || i.Queue != b.queue {
				b.Fatalf("list of %v: %+v", q.State, i)
			}
		}
		all = append(all, p.Messages...)
		if q.After = p.Next; q.After == "" {
			return all
		}
		if between != nil {
			between()
		}
	}
	b.Fatalf("list of %v does not end", q.State)
	return nil
}

// listed lists a state of the bed's queue.
func (b *bed) listed(state engine.State) []engine.Info {
	b.Helper()
	return b.list(b.e.(engine.Lister), engine.ListQuery{Queue: b.queue, State: state, Limit: 100}, nil)
}

// population puts several messages into each state and returns their ids by state.
func (b *bed) population() map[engine.State][]engine.ID {
	b.Helper()
	all := map[engine.State][]engine.ID{}
	for range 4 {
		b.push(b.msg("", dueNow))
	}
	for i, l := range b.leaseN(4, 0) {
		b.bury(l.Token, "x")
		all[engine.Dead] = append(all[engine.Dead], l.ID)
		if i == 1 {
			b.pass(1)
		}
	}
	for i := range 5 {
		b.push(b.msg("", dueNow))
		l := b.lease1(time.Duration(10-i) * time.Hour)
		all[engine.Leased] = append(all[engine.Leased], l.ID)
	}
	base := b.now().Truncate(time.Second)
	for _, n := range []int{3, 1, 4, 1, 5, 2, 6} {
		d := time.Duration(n) * time.Hour
		all[engine.Scheduled] = append(all[engine.Scheduled], b.push(b.msg("", engine.When{At: base.Add(d)})).ID)
		all[engine.Ready] = append(all[engine.Ready], b.push(b.msg("", engine.When{At: base.Add(-d)})).ID)
	}
	return all
}
