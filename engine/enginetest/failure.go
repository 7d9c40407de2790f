package enginetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// leaseAs leases one message for a worker.
func (b *bed) leaseAs(worker string, ttr time.Duration) engine.Lease {
	b.Helper()
	var got []engine.Lease
	b.eventually("a message to lease", func() bool {
		g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 1, TTR: ttr, Remote: b.caps.RemoteLeases, Worker: worker}})
		b.is(err, nil)
		got = g.Queues[0].Messages
		return len(got) == 1
	})
	if l := got[0]; l.Failures != nil || b.caps.Workers && l.Worker != worker {
		b.Fatalf("leased for %q: %+v", worker, l.Info)
	}
	return got[0]
}

func (b *bed) needFailures() {
	b.Helper()
	b.need("Failures", b.caps.Failures)
	b.need("Get", b.caps.Get)
}

// failures returns the failures of a message by attempt, worker and reason.
func (b *bed) failures(i engine.Info) (all []string) {
	b.Helper()
	for _, f := range i.Failures {
		all = append(all, fmt.Sprintf("%d %s %s", f.Attempt, f.Worker, f.Reason))
	}
	if n := len(i.Failures); n == 0 && i.LastError != "" || n > 0 && i.LastError != i.Failures[n-1].Reason {
		b.Fatalf("the last error is %q, of %q", i.LastError, all)
	}
	return all
}

// haveFailed fails the test unless a message has these failures. An engine without Workers
// has "" for each worker.
func (b *bed) haveFailed(i engine.Info, want ...string) {
	b.Helper()
	if !b.caps.Workers {
		for k, f := range want {
			parts := strings.SplitN(f, " ", 3)
			want[k] = parts[0] + "  " + parts[2]
		}
	}
	if got := b.failures(i); !slices.Equal(got, want) {
		b.Fatalf("the failures are %q, not %q", got, want)
	}
}

var failureTests = []test{
	{"the last five are kept, oldest first", func(b *bed) {
		b.needFailures()
		m := b.msg("k", dueNow)
		m.MaxAttempts = 7
		r := b.push(m)
		b.haveFailed(b.get(b.id(r.ID)))
		var want []string
		for n := 1; n <= 7; n++ {
			l := b.leaseAs(fmt.Sprint("w", n), 0)
			before := b.now().Truncate(time.Millisecond)
			reason := fmt.Sprint("reason ", n)
			if n == 3 {
				reason = ""
			}
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &dueNow, Reason: reason})
			want = append(want, fmt.Sprintf("%d w%d %s", n, n, reason))
			i := b.get(b.id(r.ID))
			b.haveFailed(i, want[max(0, n-engine.MaxFailures):]...)
			if at := i.Failures[len(i.Failures)-1].At; at.Before(before) || at.After(b.now()) || at.Location() != time.UTC {
				b.Fatalf("it failed at %v, not after %v", at, before)
			}
		}
		if b.caps.List {
			b.haveFailed(b.listed(engine.Dead)[0], want[2:]...)
		}
	}},
	{"a lapse is one, at the deadline", func(b *bed) {
		b.needFailures()
		m := b.msg("k", dueNow)
		m.MaxAttempts, m.Isolate = 2, new(false)
		r := b.push(m)
		var deadlines []time.Time
		for _, worker := range []string{"w1", "w2"} {
			deadlines = append(deadlines, b.leaseAs(worker, b.unit).Deadline)
			b.pass(1)
		}
		i := b.state(b.id(r.ID), engine.Dead, 2)
		b.haveFailed(i, "1 w1 "+engine.Lapsed, "2 w2 "+engine.Lapsed)
		if !i.Failures[0].At.Equal(deadlines[0]) || !i.Failures[1].At.Equal(deadlines[1]) || !i.Died.Equal(deadlines[1]) {
			b.Fatalf("%+v, died %v, deadlines %v", i.Failures, i.Died, deadlines)
		}
	}},
	{"a late settlement comes after the lapse", func(b *bed) {
		b.needFailures()
		b.need("Extend", b.caps.Extend)
		m := b.msg("k", dueNow)
		m.Isolate = new(false) // else the second lease outlasts its ttr
		r := b.push(m)
		l := b.leaseAs("w", b.unit)
		b.pass(1)
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: long})
		i := b.state(b.id(r.ID), engine.Leased, 1)
		b.haveFailed(i, "1 w "+engine.Lapsed)
		if b.caps.Workers && i.Worker != "w" {
			b.Fatalf("extended, it is leased by %q", i.Worker)
		}
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &dueNow, Reason: "late"})
		b.haveFailed(b.get(b.id(r.ID)), "1 w "+engine.Lapsed, "1 w late")
		l = b.leaseAs("v", b.unit)
		b.pass(1)
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Bury, Reason: "dead"})
		b.haveFailed(b.get(b.id(r.ID)), "1 w "+engine.Lapsed, "1 w late", "2 v "+engine.Lapsed, "2 v dead")
	}},
	{"snooze, release and extend are none", func(b *bed) {
		b.needFailures()
		b.need("GiveBack", b.caps.GiveBack)
		r := b.push(b.msg("k", dueNow))
		b.settle(engine.Settlement{Token: b.leaseAs("w", 0).Token, Do: engine.Retry, When: &dueNow, Reason: "one"})
		for _, do := range []engine.Action{engine.Snooze, engine.Release, engine.Extend} {
			if do != engine.Extend || b.caps.Extend {
				b.settle(engine.Settlement{Token: b.leaseAs("v", 0).Token, Do: do, When: &dueNow, Reason: "none"})
				b.haveFailed(b.get(b.id(r.ID)), "1 w one")
			}
		}
	}},
	{"they stay when the message is put off, replaced or redriven", func(b *bed) {
		b.needFailures()
		r := b.push(b.msg("k", dueNow))
		b.settle(engine.Settlement{Token: b.leaseAs("w", 0).Token, Do: engine.Retry, When: &dueNow, Reason: "one"})
		if b.caps.Reschedule {
			i, err := b.e.Reschedule(b.Context(), b.id(r.ID), dueNow)
			b.is(err, nil)
			b.haveFailed(i, "1 w one")
		}
		for c := engine.Replace; b.caps.Keys && c <= engine.Rearm; c++ {
			b.pushAs(c, "k", dueNow)
			b.haveFailed(b.get(b.id(r.ID)), "1 w one")
		}
		if b.caps.Redrive {
			l := b.leaseAs("v", 0)
			b.bury(l.Token, "two")
			b.redrive(0, r.ID)
			b.haveFailed(b.state(b.id(r.ID), engine.Ready, 0), "1 w one", fmt.Sprint(l.Attempt, " v two"))
		}
	}},
	{"long reasons and names are kept as far as they may be", func(b *bed) {
		b.needFailures()
		worker := strings.Repeat("w", engine.MaxWorkerBytes)
		r := b.push(b.msg("k", dueNow))
		long := "a" + strings.Repeat("é", 1<<19)
		var want []string
		for n := range engine.MaxFailures {
			b.settle(engine.Settlement{Token: b.leaseAs(worker, 0).Token, Do: engine.Retry, When: &dueNow, Reason: long})
			want = append(want, fmt.Sprintf("%d %s %s", n+1, worker, long[:engine.MaxReason-1]))
		}
		b.haveFailed(b.get(b.id(r.ID)), want...)
	}},
	{"what is returned is the caller's", func(b *bed) {
		b.needFailures()
		r := b.push(b.msg("k", dueNow))
		b.settle(engine.Settlement{Token: b.leaseAs("w", 0).Token, Do: engine.Retry, When: &dueNow, Reason: "one"})
		i := b.get(b.id(r.ID))
		i.Failures[0].Reason = "x"
		b.haveFailed(b.get(b.id(r.ID)), "1 w one")
	}},
}

var workerTests = []test{
	{"look-ups and lists say who has a lease", func(b *bed) {
		b.need("Workers", b.caps.Workers)
		b.need("Get", b.caps.Get)
		r := b.push(b.msg("k", dueNow))
		has := func(state engine.State, worker string) {
			b.Helper()
			if i := b.get(b.id(r.ID)); i.State != state || i.Worker != worker {
				b.Fatalf("it is %v, leased by %q, not %q", i.State, i.Worker, worker)
			}
			if b.caps.List {
				if all := b.listed(state); len(all) != 1 || all[0].Worker != worker {
					b.Fatalf("%q is not in the list: %+v", worker, all)
				}
			}
		}
		for _, worker := range []string{"w1", "", "Wörker 2", strings.Repeat("w", engine.MaxWorkerBytes)} {
			l := b.leaseAs(worker, 0)
			has(engine.Leased, worker)
			if b.caps.Extend {
				b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: long})
				has(engine.Leased, worker)
			}
			if b.h.Reopen != nil && b.caps.RemoteLeases {
				b.reopen()
				has(engine.Leased, worker)
			}
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
			has(engine.Ready, "")
		}
	}},
	{"each want of a call has its own", func(b *bed) {
		b.need("Workers", b.caps.Workers)
		b.need("Get", b.caps.Get)
		var ids []engine.ID
		for range 3 {
			ids = append(ids, b.push(b.msg("", dueNow)).ID)
		}
		wants := []engine.Want{{Queue: b.queue, Max: 1, Worker: "a"}, {Queue: b.queue, Max: 1}, {Queue: b.queue, Max: 1, Worker: "b"}}
		g, err := b.e.Lease(b.Context(), wants)
		b.is(err, nil)
		for n, q := range g.Queues {
			for _, l := range q.Messages {
				ids = slices.DeleteFunc(ids, func(id engine.ID) bool { return id == l.ID })
				if got := cmp.Or(b.get(b.id(l.ID)).Worker, l.Worker); got != wants[n].Worker {
					b.Errorf("the lease of want %d is %q's", n, got)
				}
			}
		}
		if len(ids) > 0 && !b.caps.Shares {
			b.Errorf("%v are not leased", ids)
		}
	}},
	{"so has each taker of a want, in order", func(b *bed) {
		b.need("Workers", b.caps.Workers)
		b.need("Get", b.caps.Get)
		want := engine.Want{Queue: b.queue, Max: 6, Worker: "d", Takers: []engine.Taker{{Worker: "a", Max: 2}, {Max: 1}, {Worker: "c", Max: 2}}}
		names := []string{"a", "a", "", "c", "c", "d"}
		left := 0
		for _, n := range []int{want.Max + 1, 2} { // more than they take, and then fewer
			for range n {
				b.push(b.msg("", dueNow))
			}
			left += n
			g, err := b.e.Lease(b.Context(), []engine.Want{want})
			b.is(err, nil)
			got := g.Queues[0].Messages
			if len(got) != min(left, want.Max) && !b.caps.Shares {
				b.Fatalf("%d of %d are leased", len(got), left)
			}
			left -= len(got)
			for i, l := range got {
				if name := names[i]; l.Worker != name || b.get(b.id(l.ID)).Worker != name {
					b.Errorf("lease %d of %d is %q's, not %q's", i, len(got), l.Worker, name)
				}
				b.settle(engine.Settlement{Token: l.Token, Do: engine.Ack})
			}
		}
	}},
	{"so does a claim", func(b *bed) {
		b.need("Workers", b.caps.Workers)
		b.need("Get", b.caps.Get)
		c := optional[engine.Claimer](b, "Claim", b.caps.Claim)
		r := b.push(b.msg("k", dueNow))
		l, err := c.Claim(b.Context(), b.id(r.ID), engine.Want{TTR: long, Worker: "reader"})
		b.is(err, nil)
		if i := b.get(b.id(r.ID)); l.Worker != "reader" || i.Worker != "reader" || l.Failures != nil {
			b.Fatalf("claimed by %q, shown is %q", l.Worker, i.Worker)
		}
	}},
}
