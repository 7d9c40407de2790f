package enginetest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// manyQueues is the number of queues in these tests.
const manyQueues = 150

// queues returns the names of n queues, unsorted.
func (b *bed) queues(n int) []string {
	names := make([]string, n)
	for i, at := range rand.Perm(n) {
		names[at] = fmt.Sprintf("%s-%03d", b.queue, i)
	}
	return names
}

// in1 makes msg a message of another queue.
func in1(queue string, msg engine.Message) engine.Message {
	msg.Queue = queue
	return msg
}

var manyTests = []test{
	{"one call leases from many queues, each its own", func(b *bed) {
		names := b.queues(manyQueues)
		var msgs []engine.Message
		has := map[string]int{}
		for i, q := range names {
			for range i % 4 {
				msgs = append(msgs, in1(q, b.msg("", dueNow)))
				has[q]++
			}
			msgs = append(msgs, in1(q, b.msg("", dueLater)))
		}
		b.pushEach(msgs)
		for round := range 3 {
			wants := make([]engine.Want, len(names))
			for i, q := range names {
				wants[i] = engine.Want{Queue: q, Max: 2}
			}
			g, err := b.e.Lease(b.Context(), wants)
			if err != nil {
				b.Fatal(err)
			}
			for i, got := range g.Queues {
				q := names[i]
				want := min(2, has[q])
				has[q] -= want
				if got.Err != nil || len(got.Messages) != want || got.More != (has[q] > 0) {
					b.Fatalf("round %d: %s: %d messages, more %v, %v; want %d, %d left", round, q, len(got.Messages), got.More, got.Err, want, has[q])
				}
				if problem := b.checkGrant(g.Now, wants[i], got); problem != "" {
					b.Fatal(problem)
				}
				if b.caps.Foresight && !got.More && (got.NextDue.IsZero() || got.NextDue.After(g.Now.Add(long+b.unit))) {
					b.Fatalf("%s: next due %v, now %v", q, got.NextDue, g.Now)
				}
				for _, l := range got.Messages {
					if l.Queue != q {
						b.Fatalf("%s got a message of %s", q, l.Queue)
					}
				}
			}
		}
	}},
	{"a queue with much leaves the others theirs", func(b *bed) {
		names := b.queues(20)
		var msgs []engine.Message
		for range 2000 {
			msgs = append(msgs, b.msg("", dueNow))
		}
		wants := []engine.Want{{Queue: b.queue, Max: 1000}}
		for _, q := range names {
			msgs = append(msgs, in1(q, b.msg("", dueNow)))
			wants = append(wants, engine.Want{Queue: q, Max: 10})
		}
		b.pushEach(msgs)
		g, err := b.e.Lease(b.Context(), wants)
		if err != nil || len(g.Queues[0].Messages) == 0 || !g.Queues[0].More {
			b.Fatalf("%v; %d messages, more %v", err, len(g.Queues[0].Messages), g.Queues[0].More)
		}
		for i, q := range g.Queues[1:] {
			if len(q.Messages) != 1 || q.More {
				b.Errorf("%s: %d messages, more %v", names[i], len(q.Messages), q.More)
			}
		}
	}},
	{"many queues come and go, and are counted and listed once each", func(b *bed) {
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		names := b.queues(manyQueues)
		listed := func() map[string]engine.QueueInfo {
			all := map[string]engine.QueueInfo{}
			for after := b.queue + "-"; ; {
				page, next, err := c.Queues(b.Context(), after, 37)
				if err != nil {
					b.Fatal(err)
				}
				for _, q := range page {
					if _, twice := all[q.Queue]; twice {
						b.Fatalf("%s is listed twice", q.Queue)
					}
					if len(q.Queue) == len(names[0]) && q.Queue[:len(b.queue)] == b.queue {
						all[q.Queue] = q
					}
				}
				if after = next; next == "" || next > b.queue+"~" {
					return all
				}
			}
		}
		for range 2 { // emptied queues are used again
			var msgs []engine.Message
			for _, q := range names {
				msgs = append(msgs, in1(q, b.msg("k", dueNow)), in1(q, b.msg("", dueLater)))
			}
			b.pushEach(msgs)
			all := listed()
			for _, q := range names {
				if i := all[q]; i.Ready != 1 || i.Scheduled != 1 || i.Leased != 0 || i.Dead != 0 {
					b.Fatalf("%s: %+v", q, i)
				}
			}
			b.need("Cancel", b.caps.Cancel)
			var mu sync.Mutex
			cutAll(len(names), func(i int) {
				g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: names[i], Max: 5}})
				if err != nil || len(g.Queues[0].Messages) != 1 {
					b.Errorf("lease of %s: %v, %d messages", names[i], err, len(g.Queues[0].Messages))
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if err := b.settled(engine.Settlement{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}); err != nil {
					b.Errorf("ack: %v", err)
				}
			})
			p := optional[engine.Purger](b, "Purge", b.caps.Purge)
			for _, q := range names {
				if n, err := p.Purge(b.Context(), q, 0); err != nil || n != 1 {
					b.Fatalf("purge of %s: %d, %v", q, n, err)
				}
			}
			if all = listed(); len(all) != 0 {
				b.Fatalf("%d empty queues are listed: %+v", len(all), all)
			}
		}
	}},
	{"a hint names its queue among many", func(b *bed) {
		names := b.queues(manyQueues)
		var mu sync.Mutex
		hinted := map[string]bool{}
		stop := b.e.Watch(func(q string) {
			mu.Lock()
			defer mu.Unlock()
			hinted[q] = true
		})
		defer stop()
		wants := make([]engine.Want, len(names))
		for i, q := range names {
			wants[i] = engine.Want{Queue: q, Max: 1}
		}
		if _, err := b.e.Lease(b.Context(), wants); err != nil { // after this, each queue waits for a hint
			b.Fatal(err)
		}
		for _, q := range names[:manyQueues/2] {
			b.pushEach([]engine.Message{in1(q, b.msg("", dueNow))})
		}
		b.eventually("each queue's hint", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, q := range names[:manyQueues/2] {
				if !hinted[q] {
					return false
				}
			}
			return true
		})
	}},
}

// pushEach pushes all in one call; each must succeed.
func (b *bed) pushEach(msgs []engine.Message) []engine.PushResult {
	b.Helper()
	results, err := b.e.Push(b.Context(), msgs)
	if err != nil {
		b.Fatalf("push of %d: %v", len(msgs), err)
	}
	for _, r := range results {
		b.is(r.Err, nil)
	}
	return results
}
