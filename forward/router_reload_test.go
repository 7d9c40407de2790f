package forward

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

// A list of queues may come between Set and the router's turn to heed it.
func TestQueuesOfRoutesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, target := newTrial(t, "gone", nil)
		c, err := tarry.Open(context.Background(), "mem:", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := NewRouter(c, nil)
		if err := r.Set(Routes{{Queue: "a.*", Target: target}}); err != nil {
			t.Fatal(err)
		}
		r.takeRoutes()
		if err := r.Set(nil); err != nil {
			t.Fatal(err)
		}
		r.finder.take(list{began: time.Now(), queues: map[string]struct{}{"a.1": {}}})
		r.assign()
		r.takeRoutes()
		r.assign()
		if n := len(r.finder.queues); n > 0 {
			t.Errorf("%d queues are left of no route", n)
		}
		r.closing.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// New queues bring new workers, and each leases as much as the route has slots.
func TestNewQueuesOfADeadTargetPileNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width = 4
		_, target := newTrial(t, "piles", timesOut)
		s := newSite(t, RouterConfig{DrainTimeout: -1}, Route{Queue: "a.*", Target: target, Concurrency: width})
		for i := range 200 {
			s.push(fmt.Sprint("a.", i), "x", tarry.Backoff(time.Hour))
			time.Sleep(50 * time.Millisecond)
		}
		page, _, err := s.c.Queues(t.Context(), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		leased := 0
		for _, q := range page {
			leased += int(q.Leased)
		}
		if leased > 3*width {
			t.Errorf("%d messages are leased for %d slots", leased, width)
		}
		time.Sleep(10 * time.Minute)
		for i := range 200 {
			if q := s.holds(fmt.Sprint("a.", i)); q.Ready+q.Leased > 0 {
				t.Errorf("%s was never handed on", q.Queue)
			}
		}
		_ = s.close() // what is cut off is an error
	})
}

// A worker that had not finished in time when another took its place is told of then, and
// the end of the router is in good order.
func TestWorkersThatWereReplacedDoNotSpoilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		_, deaf := newTrial(t, "deaf-for-long", func(_ context.Context, m *tarry.Message[[]byte]) error {
			if m.Queue == "a.1" {
				<-let
			}
			return nil
		})
		s := newSite(t, RouterConfig{}, Route{Queue: "a.*", Target: deaf})
		s.push("a.1", "")
		time.Sleep(time.Second)
		s.push("a.2", "") // for which there is another worker
		time.Sleep(2 * time.Minute)
		close(let)
		time.Sleep(time.Minute)
		if len(s.log.with("did not return")) == 0 {
			t.Errorf("nothing tells of the worker: %s", s.log.with(""))
		}
		s.done()
	})
}
