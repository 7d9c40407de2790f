package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// counting returns a stage that counts its calls of Lease.
func counting() (*stage, *atomic.Int32) {
	s, n := newStage(), new(atomic.Int32)
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		n.Add(1)
		return s.Engine.Lease(ctx, wants)
	}
	return s, n
}

func TestThousandLongPollsCostFewCalls(t *testing.T) {
	s, calls := counting()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var got atomic.Int32
		var waiting sync.WaitGroup
		for range 1000 {
			waiting.Go(func() {
				l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour,
					LeaseOptions: tarry.LeaseOptions{TTR: 24 * time.Hour}})
				if err != nil {
					t.Error(err)
				}
				got.Add(int32(len(l.Messages)))
			})
		}
		synctest.Wait()
		pass(10 * time.Minute)
		for i := range 100 {
			push(t, c, "q", fmt.Sprint(i), tarry.In(time.Minute))
		}
		waiting.Wait()
		if got.Load() != 100 {
			t.Errorf("%d messages came, want 100", got.Load())
		}
		if n := calls.Load(); n > 110 { // at most one for each push
			t.Errorf("%d calls of Lease", n)
		}
	})
}

func TestLeaseWaitsForTheDueTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.In(time.Minute))
		start := time.Now()
		req := tarry.LeaseRequest{Queues: []string{"q"}, Max: 10}
		l, err := c.Lease(t.Context(), req)
		if err != nil || len(l.Messages) != 0 || l.NextDue.Sub(start) != time.Minute {
			t.Errorf("without waiting: %+v, %v", l, err)
		}
		req.Wait = 10 * time.Second
		if l, err := c.Lease(t.Context(), req); err != nil || len(l.Messages) != 0 || time.Since(start) != 10*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
		req.Wait = time.Hour
		if l, err := c.Lease(t.Context(), req); err != nil || len(l.Messages) != 1 || time.Since(start) != time.Minute {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
	})
}

func TestLeaseIsWokenByAnEarlierMessage(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "late", tarry.In(time.Hour))
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			push(t, c, "q", "early", tarry.In(5*time.Second))
		}()
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 10, Wait: 2 * time.Hour})
		if err != nil || len(l.Messages) != 1 || string(l.Messages[0].Body) != "early" || time.Since(start) != 6*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
	})
}

func TestCloseEndsWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		errs := make(chan error, 10)
		for range 10 {
			go func() {
				_, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
				errs <- err
			}()
		}
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for range 10 {
			if err := <-errs; !errors.Is(err, tarry.ErrClosed) {
				t.Errorf("lease: %v", err)
			}
		}
		if _, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1}); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("lease after Close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestLostHintIsMadeUpForByRecheck(t *testing.T) {
	s, calls := counting()
	s.watch = func(func(string)) func() { return func() {} }
	s.caps = func(c *engine.Capabilities) { c.Recheck = 5 * time.Second }
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var at list[time.Duration]
		start := time.Now()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			at.add(time.Since(start))
			return nil
		})
		stop := run(t, w)
		pass(time.Second)
		push(t, c, "q", "x")
		pass(time.Minute)
		if got := at.all(); len(got) != 1 || got[0] != 5*time.Second {
			t.Errorf("handled at %v, want 5s", got)
		}
		if n := calls.Load(); n > 20 {
			t.Errorf("%d calls of Lease in a minute", n)
		}
		stop()
	})
}

func TestEngineThatFailsIsAskedAgain(t *testing.T) {
	s := newStage()
	var down atomic.Bool
	var calls atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		if calls.Add(1); down.Load() {
			return engine.Grant{}, engine.ErrUnavailable
		}
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe}))
		down.Store(true)
		stop := run(t, w)
		push(t, c, "q", "x")
		pass(time.Minute)
		if _, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"other"}, Max: 1, Wait: time.Hour}); !errors.Is(err, tarry.ErrUnavailable) {
			t.Errorf("lease: %v", err)
		}
		down.Store(false)
		pass(10 * time.Second)
		if n := calls.Load(); n > 40 {
			t.Errorf("%d calls in a minute of failure", n)
		}
		if len(rec.of(tarry.EngineFailed)) == 0 || len(rec.of(tarry.Acked)) != 1 {
			t.Errorf("events %+v", rec.events)
		}
		stop()
	})
}

func TestNoQueueStarvesAnother(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for _, q := range []string{"a", "b", "c"} {
			for range 300 {
				push(t, c, q, "x")
			}
		}
		var order list[string]
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1})
		for _, q := range []string{"a", "b", "c"} {
			tarry.Handle(w, tarry.NewTopic[string](q), func(_ context.Context, m *tarry.Message[string]) error {
				order.add(m.Queue)
				time.Sleep(time.Second)
				return nil
			})
		}
		stop := run(t, w)
		pass(99*time.Second + 500*time.Millisecond)
		n := map[string]int{}
		for _, q := range order.all() {
			n[q]++
		}
		for _, q := range []string{"a", "b", "c"} {
			if n[q] < 30 || n[q] > 36 {
				t.Errorf("handled by queue: %v; want a third each", n)
			}
		}
		stop()
	})
}

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
	asked, began := paced(t, 1000, 0, &tarry.WorkerConfig{Concurrency: 1000}, many...)
	if len(began) != 1000 || began[999] != 0 {
		t.Errorf("%d of 1,000 queues began in calls at %v", len(began), asked)
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

// lag is an engine whose clock a test can set apart from the process's.
type lag struct {
	*enginetest.Model
	recheck time.Duration
}

func (l *lag) Capabilities() engine.Capabilities {
	caps := l.Model.Capabilities()
	caps.Recheck = l.recheck
	return caps
}

func TestEngineClockDecides(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			eng := &lag{recheck: time.Minute}
			eng.Model = enginetest.NewModel(func() time.Time { return time.Now().Add(off) })
			bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe, LeaseTTR: 10 * time.Second})
				var at list[time.Duration]
				start := time.Now()
				tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
					at.add(time.Since(start))
					time.Sleep(30 * time.Second)
					return ctx.Err()
				})
				stop := run(t, w)
				push(t, c, "q", "x", tarry.In(30*time.Second))
				pass(5 * time.Minute)
				if got := at.all(); len(got) != 1 || got[0] != 30*time.Second {
					t.Errorf("handled at %v, want 30s", got)
				}
				if e := rec.one(t, tarry.Acked); e.Lateness != 0 {
					t.Errorf("lateness %s", e.Lateness)
				}
				stop()
			})
		})
	}
}

func TestStepOfTheEngineClockIsNoticedByRecheck(t *testing.T) {
	var off atomic.Int64
	eng := &lag{recheck: time.Second}
	eng.Model = enginetest.NewModel(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		var at list[time.Duration]
		start := time.Now()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			at.add(time.Since(start))
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "x", tarry.In(time.Hour))
		pass(10*time.Second + 500*time.Millisecond)
		off.Store(int64(2 * time.Hour))
		pass(time.Minute)
		if got := at.all(); len(got) != 1 || got[0] > 12*time.Second {
			t.Errorf("handled at %v, want within a second of the step", got)
		}
		stop()
	})
}

// A worker that stops leaves nothing leased behind, also when another call for it ends
// before what came too late has been released.
func TestWorkerThatStopsWaitsForWhatIsGivenBack(t *testing.T) {
	s := newStage()
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		if len(wants) == 1 && wants[0].Queue == "late" { // it brings nothing
			time.Sleep(100 * time.Millisecond)
			return engine.Grant{Now: time.Now(), Queues: make([]engine.Granted, 1)}, nil
		}
		g, err := s.Engine.Lease(ctx, wants)
		time.Sleep(50 * time.Millisecond)
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		time.Sleep(time.Second)
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		for _, q := range []string{"soon", "late"} {
			tarry.Handle(w, tarry.NewTopic[string](q), func(context.Context, *tarry.Message[string]) error { return nil }, tarry.Concurrency(1))
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- w.Run(ctx) }()
		time.Sleep(time.Second)
		push(t, c, "late", "x", tarry.In(time.Second))
		push(t, c, "soon", "x", tarry.In(time.Second+10*time.Millisecond))
		time.Sleep(time.Second + 20*time.Millisecond) // calls for both are under way
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, q := range []string{"soon", "late"} {
			if q, err := c.Queue(t.Context(), q); err != nil || q.Leased != 0 || q.Ready != 1 {
				t.Errorf("%+v, %v", q, err)
			}
		}
	})
}
