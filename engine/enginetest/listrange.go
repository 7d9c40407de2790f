package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var rangeTests = []test{
	{"each state between any two instants, both ways, over pages of any size", func(b *bed) {
		b.need("Range", b.caps.Range)
		lister := optional[engine.Lister](b, "List", b.caps.List)
		for state := range b.population() {
			all := b.list(lister, engine.ListQuery{Queue: b.queue, State: state, Limit: 1000}, nil)
			bounds := []time.Time{{}}
			for _, i := range all {
				end := endOf(i)
				bounds = append(bounds, end, end.Add(1))
			}
			bounds = slices.CompactFunc(bounds, time.Time.Equal)
			for i, from := range bounds {
				for j, to := range bounds {
					q := engine.ListQuery{Queue: b.queue, State: state, From: from, To: to, Limit: 1 + (i+j)%3, Newest: (i+2*j)%3 == 0}
					want := slices.DeleteFunc(slices.Clone(all), func(i engine.Info) bool {
						end := endOf(i)
						return end.Before(from) || !to.IsZero() && !end.Before(to)
					})
					slices.SortFunc(want, order(&q))
					b.sameIDs(fmt.Sprintf("%v from %v to %v, newest %v", state, from, to, q.Newest), infoIDs(b.list(lister, q, nil)), infoIDs(want))
				}
			}
		}
	}},
	{"a range in which nothing is has no page after it", func(b *bed) {
		b.need("Range", b.caps.Range)
		lister := optional[engine.Lister](b, "List", b.caps.List)
		r := b.push(b.msg("", dueLater))
		b.push(b.msg("", engine.When{In: 3 * long}))
		for _, q := range []engine.ListQuery{
			{From: r.Due.Add(1), To: r.Due.Add(time.Hour)},
			{From: r.Due.Add(time.Hour), To: r.Due}, // upside down
			{From: r.Due, To: r.Due},
			{From: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)},
			{To: time.Date(1, 1, 2, 0, 0, 0, 1, time.UTC)},
		} {
			for _, q.Newest = range []bool{false, true} {
				q.Queue, q.State, q.Limit = b.queue, engine.Scheduled, 1
				if p, err := lister.List(b.Context(), q); err != nil || len(p.Messages) > 0 || p.Next != "" {
					b.Errorf("%+v: %v, %+v", q, err, p)
				}
			}
		}
	}},
	{"a range far away is found among many", func(b *bed) {
		b.need("Range", b.caps.Range)
		lister := optional[engine.Lister](b, "List", b.caps.List)
		const n = 3000
		base := b.now().Add(long).Truncate(time.Second)
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i] = b.msg("", engine.When{At: base.Add(time.Duration(i) * time.Second)})
		}
		all := ids(b.pushEach(msgs), func(r engine.PushResult) engine.ID { return r.ID })
		q := engine.ListQuery{Queue: b.queue, State: engine.Scheduled, Limit: 7, From: base.Add((n - 100) * time.Second), To: base.Add((n - 80) * time.Second)}
		want := all[n-100 : n-80]
		b.sameIDs("forwards", infoIDs(b.list(lister, q, nil)), want)
		q.Newest = true
		slices.Reverse(want)
		b.sameIDs("backwards", infoIDs(b.list(lister, q, nil)), want)
	}},
	{"a cursor goes on in its own list alone", func(b *bed) {
		b.need("Range", b.caps.Range)
		lister := optional[engine.Lister](b, "List", b.caps.List)
		for range 3 {
			b.push(b.msg("", dueLater))
			b.push(b.msg("", dueNow))
		}
		q := engine.ListQuery{Queue: b.queue, State: engine.Scheduled, Limit: 1}
		p, err := lister.List(b.Context(), q)
		if err != nil || p.Next == "" {
			b.Fatalf("%v, %+v", err, p)
		}
		back, ready := q, q
		back.Newest, ready.State = true, engine.Ready
		for _, other := range []engine.ListQuery{back, ready} {
			other.After = p.Next
			if _, err := lister.List(b.Context(), other); !errors.Is(err, engine.ErrInvalid) {
				b.Errorf("%+v: %v", other, err)
			}
		}
		for _, after := range []string{"x", p.Next + "x", p.Next[1:], strings.ToUpper(p.Next) + "=", "\x00", strings.Repeat("A", 4000)} {
			q.After = after
			if _, err := lister.List(b.Context(), q); !errors.Is(err, engine.ErrInvalid) {
				b.Errorf("after %q: %v", after, err)
			}
		}
	}},
	{"a list of what is no list is refused", func(b *bed) {
		lister := optional[engine.Lister](b, "List", b.caps.List)
		for _, q := range []engine.ListQuery{{State: engine.Finished + 1, Limit: 1}, {State: engine.Ready, Limit: engine.MaxPage + 1}} {
			q.Queue = b.queue
			if _, err := lister.List(b.Context(), q); !errors.Is(err, engine.ErrInvalid) {
				b.Errorf("%+v: %v", q, err)
			}
		}
	}},
}
