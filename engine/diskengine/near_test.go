package diskengine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func TestNearOrdersWhatIsDue(t *testing.T) {
	n := newNear(1000)
	type entry struct {
		position
		priority uint32
	}
	var want []entry
	for id := engine.ID(1); id <= 500; id++ {
		e := entry{position{int64(900 + id*7%400), id}, uint32(id % 3)}
		n.put(e.position, e.priority, 0)
		if id%5 == 0 {
			n.remove(id)
		} else if e.at <= 1200 {
			want = append(want, e)
		}
	}
	n.advance(1200)
	slices.SortFunc(want, func(a, b entry) int {
		if a.priority != b.priority {
			return int(a.priority) - int(b.priority)
		}
		return a.compare(b.position)
	})
	for _, w := range want {
		if s := n.take(1, nil); len(s) != 1 || s[0].position != w.position {
			t.Fatalf("head is %v, want %v", s, w)
		}
	}
	if s := n.take(1, nil); len(s) > 0 {
		t.Fatalf("%v is not due", s)
	}
	n.advance(1100) // the clock steps back
	if at, ok := n.next(); !ok || at <= 1200 {
		t.Errorf("next due %d, %v", at, ok)
	}
}

func TestNearUnfiresWhenTheClockStepsBack(t *testing.T) {
	n := newNear(1000)
	n.put(position{1500, 1}, 0, 0)
	n.advance(2000)
	n.advance(1200)
	if s := n.take(1, nil); len(s) > 0 {
		t.Errorf("%v is not due any more", s)
	}
	if at, ok := n.next(); !ok || at != 1500 {
		t.Errorf("next due %d, %v", at, ok)
	}
}

// TestEvictForgetsTheLast lets random positions, many of one due time among them, be
// forgotten down to every size.
func TestEvictForgetsTheLast(t *testing.T) {
	for keep := range 200 {
		n := newNear(1000)
		var all []position
		for id := engine.ID(1); id <= 200; id++ {
			p := position{900 + rand.Int64N(1+int64(keep)), id}
			n.put(p, rand.Uint32N(3), 0)
			if id%7 == 0 {
				n.remove(id)
				continue
			}
			all = append(all, p)
		}
		if keep >= len(all) {
			break
		}
		slices.SortFunc(all, position.compare)
		if got := n.evict(keep); got != all[keep] {
			t.Fatalf("evict to %d: the first forgotten is %v, want %v", keep, got, all[keep])
		}
		for i, p := range all {
			if at, ok := n.at[p.id]; ok != (i < keep) || ok && n.slots[at].position != p {
				t.Fatalf("evict to %d: number %d is there: %v", keep, i, ok)
			}
		}
	}
}

// TestFarMessagesStayOnDisk pushes messages due in an hour: memory holds none of
// them, a Lease learns when the first is due, and they are in memory when it is time.
func TestFarMessagesStayOnDisk(t *testing.T) {
	e, clock := openMem(t)
	const many = 1000
	var msgs []engine.Message
	for i := range many {
		msgs = append(msgs, waiting("", time.Hour+time.Duration(i)*time.Millisecond))
	}
	pushAll(t, e, msgs)
	q := e.queue("q")
	q.mu.Lock()
	q.kicked = true // the test is the loader
	if n := q.near.len(); n != 0 {
		t.Errorf("%d of them in memory", n)
	}
	q.mu.Unlock()
	lease := func(most int) engine.Granted {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: most}})
		if err != nil {
			t.Fatal(err)
		}
		return g.Queues[0]
	}
	if g := lease(1); !g.NextDue.Equal(clock.Now().Add(time.Hour)) || q.near.len() > farChunk {
		t.Errorf("next due %v with %d in memory", g.NextDue, q.near.len())
	}
	sound(t, q)
	clock.Advance(time.Hour - 30*time.Second)
	for more := true; more; {
		var err error
		if more, err = q.load(e.now().ms); err != nil {
			t.Fatal(err)
		}
	}
	if n := q.near.len(); n != many {
		t.Errorf("%d of %d in memory half a minute before", n, many)
	}
	sound(t, q)
	clock.Advance(31 * time.Second)
	if g := lease(many); len(g.Messages) != many {
		t.Errorf("leased %d of %d", len(g.Messages), many)
	}
}

// TestBacklogBeyondMemory pushes more than memory holds while the loader works,
// others cancel and the clock moves on, and takes everything out again: each
// message once, in order, none early, none that was cancelled.
func TestBacklogBeyondMemory(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	e, err := Open("data", &Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quietLog})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const total, batch = nearFull + 2*loadChunk, 1000
	var group sync.WaitGroup
	for g := range 2 {
		group.Go(func() {
			for from := g * batch; from < total; from += 2 * batch {
				var msgs []engine.Message
				var cancels []engine.Ref
				for i := from; i < min(total, from+batch); i++ {
					key := fmt.Sprint(i)
					msgs = append(msgs, engine.Message{
						Queue: "q", Key: key, Due: engine.When{In: time.Duration(i*7919%total) * time.Millisecond},
						Terms: engine.Terms{Priority: new(uint32(1)), MaxAttempts: 1, TTR: time.Hour},
					})
					if i%10 == 0 {
						cancels = append(cancels, engine.Ref{Queue: "q", Key: key})
					}
				}
				if _, err := e.Push(t.Context(), msgs); err != nil {
					t.Error(err)
				}
				errs, err := e.Cancel(t.Context(), cancels)
				for _, one := range append(errs, err) {
					if one != nil {
						t.Error(one)
					}
				}
			}
		})
	}
	group.Wait()
	q := e.queue("q")
	if n := q.near.len(); n > nearFull {
		t.Errorf("%d entries in memory", n)
	}
	seen := make(map[engine.ID]bool)
	var last position
	for range 200 {
		clock.Advance(total / 100 * time.Millisecond)
		for {
			g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1000}})
			if err != nil {
				t.Fatal(err)
			}
			got := g.Queues[0]
			for _, l := range got.Messages {
				at := position{l.Due.UnixMilli(), l.ID}
				if seen[l.ID] || l.Due.After(g.Now) || at.less(last) {
					t.Fatalf("%v, due %v, at %v: seen %v, after %v", l.ID, l.Due, g.Now, seen[l.ID], last)
				}
				seen[l.ID], last = true, at
			}
			if !got.More {
				break
			}
		}
	}
	if want := total - (total+9)/10; len(seen) != want {
		t.Errorf("leased %d of %d", len(seen), want)
	}
}

// TestFarMessagesLeaveMemory reads ahead what comes next when that lies far ahead, and
// then pushes much that lies before it.
func TestFarMessagesLeaveMemory(t *testing.T) {
	e, _ := openMem(t)
	ctx := t.Context()
	pushAll(t, e, []engine.Message{waiting("a", 300*24*time.Hour)})
	q := e.queue("q")
	for i := range 20 {
		var msgs []engine.Message
		for j := range 500 {
			msgs = append(msgs, waiting(fmt.Sprint(i, " ", j), 24*time.Hour+time.Duration(rand.Int64N(int64(200*24*time.Hour)))))
		}
		pushAll(t, e, msgs)
		if _, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	sound(t, q)
	if n := q.near.len(); n > farFull+farChunk {
		t.Errorf("%d are in memory", n)
	}
}
