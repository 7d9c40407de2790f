package tarry_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

var bytesTopic = tarry.NewTopic[string]("q")

// record gathers a worker's events.
type record struct {
	mu     sync.Mutex
	events []tarry.Event
}

func (r *record) observe(e tarry.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *record) of(kind tarry.EventKind) (some []tarry.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

// one returns the only event of a kind.
func (r *record) one(t *testing.T, kind tarry.EventKind) tarry.Event {
	t.Helper()
	some := r.of(kind)
	if len(some) != 1 {
		t.Fatalf("%d events of kind %s, want 1: %+v", len(some), kind, r.events)
	}
	return some[0]
}

// run starts a worker in a synctest bubble; stop drains it and checks that it was
// content.
func run(t *testing.T, w *tarry.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	synctest.Wait()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func push(t *testing.T, c *tarry.Client, queue, body string, opts ...tarry.PushOption) tarry.Pushed {
	t.Helper()
	p, err := c.Push(t.Context(), queue, []byte(body), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gone fails the test if the message is still there.
func gone(t *testing.T, c *tarry.Client, p tarry.Pushed) {
	t.Helper()
	if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of(p.Queue)); !errors.Is(err, tarry.ErrNotFound) {
		t.Errorf("message %s is still there: %v, %v", p.ID, info.State, err)
	}
}

func TestWorkerHandlesAndAcks(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec record
		type order struct{ ID string }
		topic := tarry.NewTopic[order]("order.unpaid")
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe})
		var got list[tarry.Message[order]]
		tarry.Handle(w, topic, func(ctx context.Context, m *tarry.Message[order]) error {
			got.add(*m)
			return nil
		})
		stop := run(t, w)
		p, err := topic.Push(t.Context(), c, order{"42"}, tarry.In(30*time.Minute), tarry.Key("k"), tarry.Header("trace", "t1"))
		if err != nil {
			t.Fatal(err)
		}
		pass(30*time.Minute - time.Millisecond)
		if got.len() != 0 {
			t.Fatal("handled early")
		}
		pass(time.Millisecond)
		if got.len() != 1 {
			t.Fatalf("handled %d times", got.len())
		}
		m := got.all()[0]
		if m.Body.ID != "42" || m.ID != p.ID || m.Queue != "order.unpaid" || m.Key != "k" || m.Attempt != 1 ||
			m.MaxAttempts != 20 || !m.Due.Equal(p.Due) || m.Header("trace") != "t1" || m.Header("none") != "" || m.LastAttempt() {
			t.Errorf("message is %+v", m)
		}
		gone(t, c, p)
		e := rec.one(t, tarry.Acked)
		if e.Lateness != 0 || e.ID != p.ID || e.Key != "k" || e.Attempt != 1 || e.Count != 1 || e.Err != nil {
			t.Errorf("event is %+v", e)
		}
		rec.one(t, tarry.Started)
		stop()
	})
}

func TestWorkerRetriesOnScheduleExactly(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe})
		start := time.Now()
		var at list[time.Duration]
		var reasons list[string]
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			at.add(time.Since(start))
			reasons.add(m.LastError)
			return errors.New("no answer " + string(rune('0'+m.Attempt)))
		})
		stop := run(t, w)
		p := push(t, c, "q", "pay", tarry.MaxAttempts(5), tarry.Backoff(15*time.Second, 30*time.Second, 3*time.Minute))
		pass(time.Hour)
		want := []time.Duration{0, 15 * time.Second, 45 * time.Second, 225 * time.Second, 405 * time.Second}
		if !slices.Equal(at.all(), want) {
			t.Errorf("attempts at %v, want %v", at.all(), want)
		}
		if want := []string{"", "no answer 1", "no answer 2", "no answer 3", "no answer 4"}; !slices.Equal(reasons.all(), want) {
			t.Errorf("reasons %q, want %q", reasons.all(), want)
		}
		info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q"))
		if err != nil || info.State != tarry.Dead || info.LastError != "no answer 5" || info.Attempt != 5 {
			t.Errorf("afterwards %+v, %v", info, err)
		}
		if e := rec.of(tarry.Retried); len(e) != 4 || e[1].Until.Sub(start) != 45*time.Second {
			t.Errorf("retried events %+v", e)
		}
		if e := rec.one(t, tarry.Died); e.Attempt != 5 || e.Err == nil || e.Err.Error() != "no answer 5" {
			t.Errorf("died event %+v", e)
		}
		stop()
	})
}

func TestWorkerVerdicts(t *testing.T) {
	cause := errors.New("boom")
	long := strings.Repeat("ä", engine.MaxReason)
	for name, tc := range map[string]struct {
		err     error
		kind    tarry.EventKind
		state   tarry.State
		attempt uint32
		in      time.Duration
		reason  string
	}{
		"snooze":         {tarry.Snooze(time.Hour), tarry.Snoozed, tarry.Scheduled, 0, time.Hour, ""},
		"snooze wrapped": {errors.Join(cause, tarry.Snooze(time.Hour)), tarry.Snoozed, tarry.Scheduled, 0, time.Hour, ""},
		"retry in":       {tarry.RetryIn(time.Minute, cause), tarry.Retried, tarry.Scheduled, 1, time.Minute, "boom"},
		"retry in nil":   {tarry.RetryIn(time.Minute, nil), tarry.Retried, tarry.Scheduled, 1, time.Minute, "retry in 1m0s"},
		"bury":           {tarry.Bury(cause), tarry.Buried, tarry.Dead, 1, 0, "boom"},
		"bury nil":       {tarry.Bury(nil), tarry.Buried, tarry.Dead, 1, 0, "bury"},
		"long reason":    {tarry.Bury(errors.New(long)), tarry.Buried, tarry.Dead, 1, 0, long[:engine.MaxReason]},
		"broken error":   {brokenError{}, tarry.Retried, tarry.Scheduled, 1, time.Second, "an error of type tarry_test.brokenError, whose methods panic: oops"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe})
				tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return tc.err })
				p := push(t, c, "q", "x", tarry.Backoff(time.Second))
				start := time.Now()
				stop := run(t, w)
				info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q"))
				if err != nil || info.State != tc.state || info.Attempt != tc.attempt || info.LastError != tc.reason {
					t.Errorf("became %+v, %v", info, err)
				}
				if tc.in > 0 && info.Due.Sub(start) != tc.in {
					t.Errorf("due in %s, want %s", info.Due.Sub(start), tc.in)
				}
				rec.one(t, tc.kind)
				stop()
			})
		})
	}
}

type brokenError struct{}

func (brokenError) Error() string { panic("oops") }

func TestWorkerVerdictsUnwrap(t *testing.T) {
	cause := errors.New("boom")
	for _, err := range []error{tarry.RetryIn(time.Second, cause), tarry.Bury(cause)} {
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%v does not wrap its cause", err)
		}
	}
}

func TestWorkerRetriesWhatItCannotDecode(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		topic := tarry.NewTopic[struct{ N int }]("numbers")
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, topic, func(context.Context, *tarry.Message[struct{ N int }]) error {
			t.Error("handled")
			return nil
		})
		stop := run(t, w)
		p := push(t, c, "numbers", `{"N":"one"}`, tarry.MaxAttempts(2), tarry.Backoff(time.Minute))
		synctest.Wait()
		if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("numbers")); err != nil || info.State != tarry.Scheduled || info.Attempt != 1 {
			t.Errorf("after one attempt it is %s, %d, %v", info.State, info.Attempt, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("numbers"))
		if err != nil || info.State != tarry.Dead || !strings.Contains(info.LastError, "does not fit the topic's type") {
			t.Errorf("became %s %q, %v", info.State, info.LastError, err)
		}
		stop()
	})
}

func TestWorkerSurvivesPanicsAndGoexit(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var log logged
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1, Logger: log.logger()})
		var handled atomic.Int32
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			switch m.Body {
			case "panic":
				panic("ouch")
			case "goexit":
				runtime.Goexit()
			}
			handled.Add(1)
			return nil
		})
		stop := run(t, w)
		p1 := push(t, c, "q", "panic", tarry.Backoff(time.Hour))
		p2 := push(t, c, "q", "goexit", tarry.Backoff(time.Hour))
		push(t, c, "q", "fine")
		synctest.Wait()
		if handled.Load() != 1 {
			t.Errorf("%d handled after a panic and a Goexit", handled.Load())
		}
		for p, want := range map[tarry.ID]string{p1.ID: "the handler panicked: ouch", p2.ID: "the handler called runtime.Goexit"} {
			if info, err := c.Get(t.Context(), tarry.ByID(p).Of("q")); err != nil || info.State != tarry.Scheduled || info.LastError != want {
				t.Errorf("became %s %q, %v", info.State, info.LastError, err)
			}
		}
		if !strings.Contains(log.String(), "worker_test.go") {
			t.Errorf("the log has no stack: %s", log.String())
		}
		stop()
	})
}

func TestWorkerSurvivesItsObserver(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(tarry.Event) { panic("observer") }})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
		stop := run(t, w)
		p := push(t, c, "q", "x")
		synctest.Wait()
		gone(t, c, p)
		stop()
	})
}

func TestWorkerObserverMayUseTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var w *tarry.Worker
		expired := 0
		w = tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(e tarry.Event) {
			if e.Kind == tarry.Expired {
				expired += e.Count
				if _, err := c.Push(context.Background(), "q", nil); err != nil {
					t.Error(err)
				}
				if _, err := c.Lease(context.Background(), tarry.LeaseRequest{Queues: []string{"other"}, Max: 1}); err != nil {
					t.Error(err)
				}
			}
		}})
		var handled atomic.Int32
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { handled.Add(1); return nil })
		push(t, c, "q", "late", tarry.ExpireAfter(time.Second))
		pass(time.Minute)
		stop := run(t, w)
		if expired != 1 || handled.Load() != 1 {
			t.Errorf("%d expired, %d handled; want 1 and 1", expired, handled.Load())
		}
		stop()
	})
}

func TestWorkerMiddlewareOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var trail list[string]
		layer := func(name string) tarry.Middleware {
			return func(next tarry.HandlerFunc) tarry.HandlerFunc {
				return func(ctx context.Context, m *tarry.Message[[]byte]) error {
					trail.add(name + " in")
					m.Body = append(slices.Clone(m.Body), name...)
					err := next(ctx, m)
					trail.add(name + " out")
					return err
				}
			}
		}
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Middleware: []tarry.Middleware{layer("a"), layer("b")}})
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			trail.add(m.Body)
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "x")
		synctest.Wait()
		if want := []string{"a in", "b in", "xab", "b out", "a out"}; !slices.Equal(trail.all(), want) {
			t.Errorf("trail %q, want %q", trail.all(), want)
		}
		stop()
	})
}

func TestWorkerHandlerTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{HandlerTimeout: time.Second, Observer: rec.observe})
		type end struct {
			cause error
			took  time.Duration
		}
		var ends list[end]
		handler := func(ctx context.Context, _ *tarry.Message[string]) error {
			start := time.Now()
			<-ctx.Done()
			ends.add(end{context.Cause(ctx), time.Since(start)})
			return ctx.Err()
		}
		tarry.Handle(w, bytesTopic, handler)
		tarry.Handle(w, tarry.NewTopic[string]("slow"), handler, tarry.HandlerTimeout(time.Minute))
		stop := run(t, w)
		push(t, c, "q", "x", tarry.Backoff(time.Hour))
		pass(2 * time.Second)
		if e := ends.all()[0]; !errors.Is(e.cause, tarry.ErrHandlerTimeout) || !errors.Is(e.cause, context.DeadlineExceeded) || e.took != time.Second {
			t.Errorf("ended after %s with %v", e.took, e.cause)
		}
		if e := rec.one(t, tarry.Retried); e.Duration != time.Second {
			t.Errorf("event %+v", e)
		}
		push(t, c, "slow", "x", tarry.Backoff(time.Hour))
		pass(2 * time.Minute)
		if e := ends.all()[1]; e.took != time.Minute {
			t.Errorf("the queue's own timeout: ended after %s", e.took)
		}
		stop()
	})
}
