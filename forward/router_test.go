package forward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestRouterHandsOnWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paid, paidURL := newTrial(t, "paid", nil)
		rest, restURL := newTrial(t, "rest", nil)
		s := newSite(t, RouterConfig{ListEvery: 10 * time.Minute}, Route{Queue: "order.*", Target: restURL}, Route{Queue: "order.paid", Target: paidURL})
		s.push("order.paid", "1", tarry.In(48*time.Hour))
		s.push("order.late", "2", tarry.In(time.Hour))
		s.push("ride.late", "3")
		began := time.Now()
		time.Sleep(49 * time.Hour)
		if got := paid.arrivals(t, 1)[0]; got.at.Sub(began) != 48*time.Hour || got.body != "1" {
			t.Errorf("order.paid: %+v", got)
		}
		if got := rest.arrivals(t, 1)[0]; got.at.Sub(began) != time.Hour || got.queue != "order.late" {
			t.Errorf("order.late: %+v", got)
		}
		if q := s.holds("order.paid"); q != (tarry.QueueInfo{Queue: "order.paid"}) {
			t.Errorf("left: %+v", q)
		}
		if s.holds("ride.late").Ready != 1 {
			t.Error("a message of no route was taken")
		}
		s.done()
		if opened, closed := rest.counts(); opened != 1 || closed != 1 {
			t.Errorf("the target was opened %d times and closed %d times", opened, closed)
		}
	})
}

// What was there before is listed; what comes is hinted at. No list is made in time here.
func TestPatternFindsQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "found", nil)
		c, err := tarry.Open(context.Background(), "mem:", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = tarry.NewTopic[string]("old.1").Push(t.Context(), c, "", tarry.In(time.Hour))
		s := newSiteOn(t, c, RouterConfig{ListEvery: 1000 * time.Hour}, Route{Queue: "*", Target: url})
		synctest.Wait()
		began := time.Now()
		for i := range 5 {
			s.push(fmt.Sprintf("new.%d", i), "")
		}
		time.Sleep(2 * time.Hour)
		for _, a := range tr.arrivals(t, 6) {
			late := a.at.Sub(began)
			if a.queue == "old.1" {
				late -= time.Hour
			}
			if late > 50*time.Millisecond {
				t.Errorf("%s was late by %s", a.queue, late)
			}
		}
		s.done()
	})
}

func TestDeadTargetDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dead := newTrial(t, "dead", func(context.Context, *tarry.Message[[]byte]) error { return errDown })
		_, hang := newTrial(t, "hang", timesOut)
		_, boom := newTrial(t, "boom", func(context.Context, *tarry.Message[[]byte]) error { panic("boom") })
		live, liveURL := newTrial(t, "live", nil)
		s := newSite(t, RouterConfig{DrainTimeout: -1},
			Route{Queue: "dead", Target: dead}, Route{Queue: "hang.*", Target: hang}, Route{Queue: "boom", Target: boom},
			Route{Queue: "live.*", Target: liveURL})
		const n = 300
		due := time.Now().Add(time.Minute)
		for i := range n {
			for _, q := range []string{"dead", fmt.Sprintf("hang.%d", i%30), "boom", fmt.Sprintf("live.%d", i%30)} {
				s.push(q, "", tarry.At(due))
			}
		}
		time.Sleep(time.Minute + time.Millisecond)
		for _, a := range live.arrivals(t, n) {
			if late := a.at.Sub(due); late != 0 {
				t.Errorf("%s was late by %s", a.queue, late)
			}
		}
		s.close() // what hangs is cut
	})
}

func TestLogIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dead := newTrial(t, "dead", func(context.Context, *tarry.Message[[]byte]) error { return errDown })
		_, boom := newTrial(t, "boom", func(context.Context, *tarry.Message[[]byte]) error { panic("boom") })
		s := newSite(t, RouterConfig{}, Route{Name: "shop", Queue: "dead", Target: dead}, Route{Queue: "boom", Target: boom})
		for range 100 {
			s.push("dead", "", tarry.Backoff(time.Second), tarry.MaxAttempts(15))
			s.push("boom", "", tarry.Backoff(time.Second), tarry.MaxAttempts(15))
		}
		time.Sleep(time.Second / 2)
		for _, route := range []string{"route=shop", "route=boom"} {
			if got := s.log.with(route); len(got) != 1 || !strings.Contains(got[0], "times=1") {
				t.Errorf("at first: %q", got)
			}
		}
		if got := s.log.with("route=shop"); !strings.Contains(got[0], errDown.Error()) {
			t.Errorf("it does not say why: %q", got)
		}
		time.Sleep(2 * time.Minute)
		for _, route := range []string{"route=shop", "route=boom"} {
			if got := s.log.with(route); len(got) != 2 || !strings.Contains(got[1], "times=1499") {
				t.Errorf("later: %q", got)
			}
		}
		s.done()
	})
}

func TestSetKeepsWhatIsUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		slow := func(ctx context.Context, _ *tarry.Message[[]byte]) error {
			select {
			case <-finish:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		kept, keptURL := newTrial(t, "kept", slow)
		old, oldURL := newTrial(t, "old", slow)
		next, nextURL := newTrial(t, "next", nil)
		same := Route{Queue: "kept.*", Target: keptURL, Rate: 1000, Options: Options{Headers: []Header{{Name: "A", Value: "b"}}}}
		s := newSite(t, RouterConfig{}, same, Route{Queue: "moved", Target: oldURL}, Route{Queue: "gone", Target: oldURL})
		s.push("kept.1", "")
		s.push("moved", "1")
		synctest.Wait()
		time.Sleep(time.Second)
		lane := s.lanes["kept.*"]
		queues := func() string { // a worker that begins anew has others
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Sprintf("%p", s.lanes["kept.*"].queues)
		}
		before := queues()
		if err := s.Set(Routes{{Queue: "moved", Target: nextURL}, same, {Queue: "new", Target: nextURL}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the old ones lease no more
		s.push("moved", "2")
		s.push("new", "3")
		s.push("gone", "4")
		time.Sleep(time.Second)
		if s.lanes["kept.*"] != lane || queues() != before {
			t.Error("the unchanged route began anew")
		}
		kept.arrivals(t, 1)
		old.arrivals(t, 1)
		if got := next.arrivals(t, 2); slices.ContainsFunc(got, func(a arrival) bool { return a.body == "1" }) {
			t.Errorf("what the old target was handed came to the new one: %v", got)
		}
		if _, closed := old.counts(); closed != 1 {
			t.Errorf("%d of the two old targets are closed while one still has a message, want 1", closed)
		}
		close(finish)
		synctest.Wait()
		if _, closed := old.counts(); closed != 2 {
			t.Error("the old target was not closed")
		}
		if opened, closed := kept.counts(); opened != 1 || closed != 0 {
			t.Errorf("the unchanged target was opened %d times and closed %d times", opened, closed)
		}
		for queue, want := range map[string]int64{"moved": 0, "kept.1": 0, "gone": 1} {
			if q := s.holds(queue); q.Ready+q.Leased+q.Scheduled != want {
				t.Errorf("%s: %+v, want %d", queue, q, want)
			}
		}
		s.done()
	})
}

func TestSetChangesNothingWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "good", nil)
		s := newSite(t, RouterConfig{}, Route{Queue: "q", Target: url})
		for _, bad := range []Routes{
			{{Queue: "other", Target: url}, {Queue: "q", Target: "gopher:"}},
			{{Queue: "other", Target: url}, {Queue: "other", Target: url}},
			{{Queue: "other", Target: url}, {Queue: "p!", Target: url}},
		} {
			if err := s.Set(bad); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "route 2") {
				t.Errorf("%v: %v", bad, err)
			}
		}
		s.push("q", "")
		s.push("other", "")
		time.Sleep(time.Second)
		tr.arrivals(t, 1)
		if opened, closed := tr.counts(); opened != closed+1 {
			t.Errorf("opened %d times, closed %d times", opened, closed)
		}
		s.done()
		if err := s.Set(nil); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("Set after the end: %v", err)
		}
		if err := s.Run(t.Context()); !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("a second Run: %v", err)
		}
	})
}

// A worker that begins anew with more queues does not cut off what the one before it hands
// on, however short a drain may be.
func TestNewQueuesCutNothingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "slow", func(ctx context.Context, _ *tarry.Message[[]byte]) error {
			select {
			case <-time.After(DefaultTimeout):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		s := newSite(t, RouterConfig{DrainTimeout: -1}, Route{Queue: "*", Target: url, Concurrency: 2})
		for i := range 6 {
			s.push(fmt.Sprint("q", i), "")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		for i, a := range tr.arrivals(t, 6) {
			if a.attempt != 1 || i > 1 && a.at.Sub(tr.got[i-2].at) < DefaultTimeout {
				t.Errorf("message %d: %+v", i, a)
			}
		}
		s.done()
	})
}

// An exact route takes a queue from the pattern's, and gives it back.
func TestSetMovesQueuesBetweenRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wide, wideURL := newTrial(t, "wide", nil)
		exact, exactURL := newTrial(t, "exact", nil)
		all := Route{Queue: "*", Target: wideURL}
		s := newSite(t, RouterConfig{}, all)
		push := func() {
			s.push("a", "")
			s.push("b", "")
			time.Sleep(10 * time.Second)
		}
		push()
		wide.arrivals(t, 2)
		if err := s.Set(Routes{all, {Queue: "a", Target: exactURL}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		push()
		wide.arrivals(t, 3)
		exact.arrivals(t, 1)
		if err := s.Set(Routes{all}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		push()
		wide.arrivals(t, 5)
		exact.arrivals(t, 1)
		if opened, _ := wide.counts(); opened != 1 {
			t.Errorf("the pattern's target was opened %d times", opened)
		}
		s.done()
	})
}

// Leases of 1 s are held until the rate lets their messages go, and each goes once.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "rated", nil)
		s := newSite(t, RouterConfig{}, Route{Queue: "q.*", Target: url, Rate: 2, Burst: 3})
		began := time.Now()
		for i := range 43 {
			s.push(fmt.Sprintf("q.%d", i%5), "", tarry.TTR(time.Second))
		}
		time.Sleep(time.Minute)
		for i, a := range tr.arrivals(t, 43) {
			want := time.Duration(max(0, i-2)) * time.Second / 2
			if at := a.at.Sub(began); at < want-time.Millisecond || at > want+100*time.Millisecond || a.attempt != 1 {
				t.Errorf("message %d: attempt %d after %s, want %s", i+1, a.attempt, at, want)
			}
		}
		if got := s.log.with(""); len(got) > 0 {
			t.Errorf("the log: %q", got)
		}
		s.done()
	})
}

// What waits for its rate goes back at once when the router ends.
func TestRateDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "rare", nil)
		s := newSite(t, RouterConfig{}, Route{Queue: "q", Target: url, Rate: 0.01})
		for range 5 {
			s.push("q", "")
		}
		time.Sleep(time.Second)
		tr.arrivals(t, 1)
		began := time.Now()
		s.end()
		if err := <-s.run; err != nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if q := s.holds("q"); q.Ready != 4 {
			t.Errorf("left: %+v", q)
		}
		for m, err := range s.c.List(t.Context(), "q", tarry.Ready) {
			if err != nil || m.Attempt != 0 {
				t.Errorf("message %s was not handed on and has attempt %d, %v", m.ID, m.Attempt, err)
			}
		}
		s.run <- nil
		s.done()
	})
}

func TestEndWithTargetsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		_, hang := newTrial(t, "hangs", hangs)
		stuck, stuckURL := newTrial(t, "stuck", nil)
		stuck.close = func() { <-let }
		s := newSite(t, RouterConfig{DrainTimeout: 3 * time.Second}, Route{Queue: "hang", Target: hang}, Route{Queue: "stuck", Target: stuckURL})
		for range 20 {
			s.push("hang", "")
			s.push("stuck", "")
		}
		time.Sleep(time.Second)
		began := time.Now()
		s.end()
		err := <-s.run
		if took := time.Since(began); took > late {
			t.Errorf("the end took %s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "route hang: 16 messages were released") {
			t.Errorf("Run: %v", err)
		}
		if q := s.holds("hang"); q.Ready != 20 {
			t.Errorf("left: %+v", q)
		}
		for m, err := range s.c.List(t.Context(), "hang", tarry.Ready) {
			if err != nil || m.Attempt != 0 {
				t.Errorf("attempt %d is left, %v", m.Attempt, err)
			}
		}
		if len(s.log.with("does not close")) != 1 {
			t.Error("nothing is said of the target that does not close")
		}
		close(let)
		s.run <- nil
		s.done()
	})
}

// A Send that heeds nothing holds up the end for the drain and what is allowed beyond it.
func TestEndWithATargetThatHeedsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		_, deaf := newTrial(t, "deaf", func(context.Context, *tarry.Message[[]byte]) error {
			<-let
			return nil
		})
		s := newSite(t, RouterConfig{DrainTimeout: time.Second}, Route{Queue: "q", Target: deaf})
		s.push("q", "")
		synctest.Wait()
		began := time.Now()
		s.end()
		err := <-s.run
		if took := time.Since(began); took != time.Second+late {
			t.Errorf("the end took %s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "route q: its Send has not returned") {
			t.Errorf("Run: %v", err)
		}
		close(let)
		s.run <- nil
		s.done()
	})
}

func TestEmptyQueuesLoseTheirWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "coming", nil)
		s := newSite(t, RouterConfig{}, Route{Queue: "*", Target: url})
		s.push("far", "", tarry.In(time.Hour))
		s.push("once", "")
		const have = "far once"
		queues := func() string {
			s.mu.Lock() // it is held when they change
			defer s.mu.Unlock()
			return strings.Join(slices.Sorted(maps.Keys(s.lanes["*"].queues)), " ")
		}
		time.Sleep(50 * time.Second)
		if got := queues(); got != have {
			t.Errorf("queues %q, want %q", got, have)
		}
		time.Sleep(50 * time.Second)
		if got := queues(); got != "far" {
			t.Errorf("queues %q: the empty one still has a worker", got)
		}
		s.push("once", "")
		time.Sleep(100 * time.Millisecond)
		if got := queues(); got != have {
			t.Errorf("queues %q, want %q", got, have)
		}
		time.Sleep(2 * time.Hour)
		tr.arrivals(t, 3)
		if got := queues(); got != "" {
			t.Errorf("queues %q: those that are empty still have a worker", got)
		}
		s.done()
	})
}

func TestTenThousandQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		tr, url := newTrial(t, "many", nil)
		s := newSite(t, RouterConfig{ListEvery: 20 * time.Second}, Route{Queue: "*", Target: url})
		began := time.Now()
		drafts := make([]tarry.Draft, n)
		for i := range drafts {
			drafts[i] = tarry.NewDraft(fmt.Sprint("q", i), nil)
			drafts[i].Due = engine.When{In: 10 * time.Second}
		}
		if _, err := s.c.PushMany(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, a := range tr.arrivals(t, n) {
			if at := a.at.Sub(began); at > 10*time.Second+50*time.Millisecond {
				t.Fatalf("%s was handed on after %s", a.queue, at)
			}
		}
		time.Sleep(2 * time.Minute)
		s.mu.Lock()
		if left := len(s.lanes["*"].queues) + len(s.finder.queues); left > 0 {
			t.Errorf("%d empty queues have a worker", left)
		}
		s.mu.Unlock()
		s.done()
	})
}

func TestMaxQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "few", nil)
		s := newSite(t, RouterConfig{MaxQueues: 3}, Route{Queue: "*", Target: url})
		for i := range 10 {
			s.push(fmt.Sprint("q", i), "")
		}
		time.Sleep(10 * time.Second)
		tr.arrivals(t, 3)
		if got := s.log.with("more queues"); len(got) != 1 || !strings.Contains(got[0], " most=3 ") {
			t.Errorf("the log: %q", got)
		}
		time.Sleep(10 * time.Minute)
		tr.arrivals(t, 10)
		s.done()
	})
}

// uncounted is an engine that cannot list its queues.
type uncounted struct{ engine.Engine }

func (u uncounted) Capabilities() engine.Capabilities {
	c := u.Engine.Capabilities()
	c.Count = false
	return c
}

func TestPatternsNeedAnEngineThatLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "named", nil)
		eng := memengine.New(nil)
		s := newSiteOn(t, tarry.New(uncounted{eng}, nil), RouterConfig{}, Route{Queue: "q", Target: url})
		if err := s.Set(Routes{{Queue: "q.*", Target: url}}); !errors.Is(err, tarry.ErrUnsupported) || !strings.Contains(err.Error(), "route 1 (q.*)") {
			t.Errorf("a pattern: %v", err)
		}
		s.push("q", "")
		synctest.Wait()
		tr.arrivals(t, 1)
		s.done()
		_ = eng.Close()
	})
}

func TestRunEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, url := newTrial(t, "any", nil)
		s := newSite(t, RouterConfig{}, Route{Queue: "*", Target: url}, Route{Queue: "q", Target: url})
		s.push("a", "")
		s.push("q", "")
		synctest.Wait()
		_ = s.c.Close()
		if err := <-s.run; !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
		if opened, closed := tr.counts(); opened != closed {
			t.Errorf("opened %d times, closed %d times", opened, closed)
		}
		s.end()
	})
}
