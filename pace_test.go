package tarry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

const pace = 5 * time.Millisecond

// paced runs a worker on an engine with a pace and n messages, each due so long after
// the one before, and returns when leases were asked for and when handlers began, from when
// the first was due.
func paced(t *testing.T, n int, apart time.Duration, cfg *tarry.WorkerConfig, queues ...string) (asked, began []time.Duration) {
	t.Helper()
	var calls, starts list[time.Duration]
	eng := newStage()
	eng.caps = func(c *engine.Capabilities) { c.Pace = pace }
	var due time.Time
	eng.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		if at := time.Since(due); at >= 0 {
			calls.add(at)
		}
		return eng.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		due = time.Now().Add(time.Second)
		w := tarry.NewWorker(c, cfg)
		for _, q := range queues {
			tarry.Handle(w, tarry.NewTopic[string](q), func(context.Context, *tarry.Message[string]) error {
				starts.add(time.Since(due))
				return nil
			})
		}
		for i := range n {
			push(t, c, queues[i%len(queues)], "x", tarry.At(due.Add(time.Duration(i)*apart)))
		}
		stop := run(t, w)
		pass(2 * time.Second)
		stop()
	})
	return calls.all(), starts.all()
}

// The first of a stream is leased at once, what follows within the pace, many at a time and of
// all queues together.
func TestLeasesGather(t *testing.T) {
	asked, began := paced(t, 100, time.Millisecond, nil, "a", "b", "c")
	if len(began) != 100 || began[0] != 0 || len(asked) > 25 {
		t.Fatalf("%d handled, the first after %v, in %d calls", len(began), began[0], len(asked))
	}
	for i, at := range began {
		if late := at - time.Duration(i)*time.Millisecond; late < 0 || late > 5*time.Millisecond {
			t.Errorf("message %d began %s after it was due", i, late)
		}
	}
}

// Who comes alone does not wait, and who is behind a backlog neither.
func TestLeasesThatDoNotWait(t *testing.T) {
	_, began := paced(t, 10, 6*time.Millisecond, nil, "q")
	for i, at := range began {
		if at != time.Duration(i)*6*time.Millisecond {
			t.Errorf("alone: message %d began at %s", i, at)
		}
	}
	_, began = paced(t, 100, 0, &tarry.WorkerConfig{Concurrency: 1}, "q")
	if len(began) != 100 || began[99] != 0 {
		t.Errorf("backlog: began at %v", began)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint("q", i)
	}
	for _, n := range []int{10, 1000} {
		asked, began := paced(t, 1000, 0, &tarry.WorkerConfig{Concurrency: n}, many...)
		if len(began) != 1000 || began[999] != 0 {
			t.Errorf("%d at a time: %d of 1,000 queues began in calls at %v", n, len(began), asked)
		}
	}
}

// A worker that is behind does not wait for the pace that another queue's stream has.
func TestABacklogBesideAStream(t *testing.T) {
	eng := newStage()
	eng.caps = func(c *engine.Capabilities) { c.Pace = pace }
	var handled atomic.Int32
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		stream, behind := tarry.NewWorker(c, nil), tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1})
		tarry.Handle(stream, tarry.NewTopic[string]("stream"), func(context.Context, *tarry.Message[string]) error { return nil })
		tarry.Handle(behind, tarry.NewTopic[string]("backlog"), func(context.Context, *tarry.Message[string]) error {
			time.Sleep(1300 * time.Microsecond)
			handled.Add(1)
			return nil
		})
		for i := range 1000 {
			push(t, c, "stream", "x", tarry.In(time.Duration(i)*time.Millisecond))
			push(t, c, "backlog", "x")
		}
		defer run(t, stream)()
		defer run(t, behind)()
		pass(time.Second)
		if n := handled.Load(); n < 700 {
			t.Errorf("%d of the backlog handled in a second", n)
		}
	})
}

// A lease returns with what it has, though more came meanwhile that waits for the pace.
func TestALeaseDoesNotWaitForMore(t *testing.T) {
	const n, long = 200, 2 * time.Millisecond
	eng := newStage()
	eng.caps = func(c *engine.Capabilities) { c.Pace = pace }
	eng.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		time.Sleep(long)
		return eng.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		go func() {
			for range n {
				push(t, c, "q", "x")
				time.Sleep(700 * time.Microsecond)
			}
		}()
		for left := n; left > 0; {
			got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 100, Wait: time.Second})
			if err != nil || len(got.Messages) == 0 {
				t.Fatalf("%d left: %v", left, err)
			}
			left -= len(got.Messages)
			if late := time.Since(got.Messages[0].Due); late > pace+long {
				t.Errorf("it came after %v", late)
			}
		}
	})
}
