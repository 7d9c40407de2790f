package tarrytest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

// everywhere runs a test with a told clock, and with both clocks in a bubble.
func everywhere(t *testing.T, test func(t *testing.T, q *tarrytest.Client)) {
	t.Run("told", func(t *testing.T) { test(t, tarrytest.New(t)) })
	t.Run("told in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, tarrytest.New(t)) })
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, tarrytest.NewInBubble(t)) })
	})
}

func TestWorkDoesWhatIsDue(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		var h handled
		push(t, q, rides, Ride{ID: "now"})
		push(t, q, rides, Ride{ID: "later"}, tarry.In(48*time.Hour))
		for i, step := range []struct {
			advance time.Duration
			want    string
		}{
			{0, "now"},
			{48*time.Hour - time.Millisecond, "now"},
			{time.Millisecond, "now later"},
		} {
			q.Advance(step.advance)
			q.Work(t.Context(), worker(q, h.handle))
			if h.String() != step.want {
				t.Errorf("step %d: handled %q, want %q", i, &h, step.want)
			}
		}
	})
}

// TestWorkDoesWhatHandlersPush has each of many messages push to another queue of the worker.
func TestWorkDoesWhatHandlersPush(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		const most = 300
		w := worker(q, func(ctx context.Context, m *tarry.Message[Ride]) error {
			if m.Body.Stars == most {
				return nil
			}
			_, err := rides.Push(ctx, q.Client, Ride{Stars: m.Body.Stars + 1})
			return err
		})
		push(t, q, rides, Ride{})
		if got, want := q.Work(t.Context(), w), (tarrytest.Worked{Acked: most + 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestManyTopics(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		const n = 250 // more than the queues that one call of the engine names
		w := tarry.NewWorker(q.Client, nil)
		for i := range n {
			topic := tarry.NewTopic[int](fmt.Sprint("topic", i))
			tarry.Handle(w, topic, func(context.Context, *tarry.Message[int]) error { return nil })
			push(t, q, topic, i, tarry.In(time.Hour))
		}
		q.Advance(time.Hour)
		if got := q.Work(t.Context(), w); got.Acked != n {
			t.Errorf("%+v, want %d", got, n)
		}
	})
}

func TestRetriesComeWithTheClock(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		begin := q.Now()
		var at []time.Duration
		fails := func() *tarry.Worker {
			return worker(q, func(_ context.Context, m *tarry.Message[Ride]) error {
				at = append(at, q.Now().Sub(begin))
				return errors.New("closed for lunch")
			})
		}
		push(t, q, rides, Ride{}, tarry.MaxAttempts(3), tarry.Backoff(15*time.Second, 3*time.Minute))
		for _, want := range []tarrytest.Worked{{Retried: 1}, {}} {
			if got := q.Work(t.Context(), fails()); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		if got, want := q.WorkAll(t.Context(), fails()), (tarrytest.Worked{Retried: 1, Dead: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := fmt.Sprint(at); got != "[0s 15s 3m15s]" || q.Now().Sub(begin) != 195*time.Second {
			t.Errorf("handled after %s; the clock is at %s", got, q.Now().Sub(begin))
		}
	})
}

func TestWhatWorkCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		results := map[string]error{
			"good": nil, "sleepy": tarry.Snooze(time.Hour), "hopeless": tarry.Bury(nil),
			"bad": errors.New("bad"), "unwanted": errors.New("the guard drops it"),
		}
		w := tarry.NewWorker(q.Client, nil)
		tarry.Handle(w, rides.OnlyIf(func(_ context.Context, m *tarry.Message[Ride]) (bool, error) {
			return m.Body.ID != "unwanted", nil
		}), func(_ context.Context, m *tarry.Message[Ride]) error { return results[m.Body.ID] })
		for id := range results {
			push(t, q, rides, Ride{ID: id})
		}
		if got, want := q.Work(t.Context(), w), (tarrytest.Worked{Acked: 2, Snoozed: 1, Dead: 1, Retried: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestHeldBackAndPaused has messages that are ready but that no worker gets.
func TestHeldBackAndPaused(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		var h handled
		for range 3 {
			push(t, q, rides, Ride{ID: "x"})
		}
		if _, err := q.Configure(t.Context(), rides.Queue(), tarry.Settings{Rate: 1. / 60}, ""); err != nil {
			t.Fatal(err)
		}
		if err := q.Pause(t.Context(), rides.Queue(), time.Hour); err != nil {
			t.Fatal(err)
		}
		begin := q.Now()
		if got := q.Work(t.Context(), worker(q, h.handle)); got.Acked != 0 {
			t.Errorf("while paused: %+v", got)
		}
		if got := q.WorkAll(t.Context(), worker(q, h.handle)); got.Acked != 3 || q.Now().Sub(begin) < time.Hour+2*time.Minute-time.Second {
			t.Errorf("%+v, after %s", got, q.Now().Sub(begin))
		}
	})
}

// TestOneInFlight has messages that wait for each other.
func TestOneInFlight(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		var h handled
		for _, id := range []string{"1", "2", "3"} {
			push(t, q, rides, Ride{ID: id})
		}
		if _, err := q.Configure(t.Context(), rides.Queue(), tarry.Settings{InFlight: 1}, ""); err != nil {
			t.Fatal(err)
		}
		if q.Work(t.Context(), worker(q, h.handle)); h.String() != "1 2 3" {
			t.Errorf("handled %q", &h)
		}
	})
}

// TestAdvanceStopsAtEachDueTime has a worker that runs all the time.
func TestAdvanceStopsAtEachDueTime(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		begin := q.Now()
		var at []time.Duration
		q.Start(t.Context(), worker(q, func(ctx context.Context, m *tarry.Message[Ride]) error {
			at = append(at, q.Now().Sub(begin))
			if m.Attempt < 3 {
				return tarry.RetryIn(10*time.Minute, nil)
			}
			return nil
		}))
		push(t, q, rides, Ride{}, tarry.In(time.Hour))
		q.Advance(2 * time.Hour)
		if got := fmt.Sprint(at); got != "[1h0m0s 1h10m0s 1h20m0s]" || q.Now().Sub(begin) != 2*time.Hour {
			t.Errorf("handled after %s; the clock is at %s", got, q.Now().Sub(begin))
		}
		push(t, q, rides, Ride{}, tarry.In(time.Hour))
		q.AdvanceTo(q.Now())
		if len(at) != 3 {
			t.Error("handled early")
		}
	})
}

// TestSchedules has a worker that runs the schedules too.
func TestSchedules(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		nightly, err := tarry.NewSchedule("nightly", "0 2 * * *", rides, Ride{ID: "night"})
		if err != nil {
			t.Fatal(err)
		}
		q.AdvanceTo(q.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)) // noon
		if _, err := q.SetSchedule(t.Context(), nightly, ""); err != nil {
			t.Fatal(err)
		}
		tarrytest.RequireNothingPushed(t, q)
		var at []string
		w := tarry.NewWorker(q.Client, &tarry.WorkerConfig{Schedules: true})
		tarry.Handle(w, rides, func(context.Context, *tarry.Message[Ride]) error {
			at = append(at, q.Now().UTC().Format(time.TimeOnly))
			return nil
		})
		q.Start(t.Context(), w)
		q.Advance(3 * 24 * time.Hour)
		if got := strings.Join(at, " "); got != "02:00:00 02:00:00 02:00:00" {
			t.Errorf("handled at %s", got)
		}
		tarrytest.RequirePushed(t, q, rides, Ride{ID: "night"}, tarry.Header(tarry.ScheduleHeader, "nightly"))
	})
}

// TestSchedulesThatEnd has schedules of which nothing is left to come: WorkAll ends, and counts
// what they have pushed.
func TestSchedulesThatEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		hourly, err := tarry.NewSchedule("hourly", "@every 1h", rides, Ride{})
		hourly.Start, hourly.End = q.Now(), q.Now().Add(5*time.Hour)
		paused, errPaused := tarry.NewSchedule("paused", "@every 1h", rides, Ride{})
		for _, s := range []tarry.Schedule{hourly, paused} {
			if _, failed := q.SetSchedule(t.Context(), s, ""); err != nil || errPaused != nil || failed != nil {
				t.Fatal(err, errPaused, failed)
			}
		}
		if _, err := q.PauseSchedule(t.Context(), "paused"); err != nil {
			t.Fatal(err)
		}
		w := tarry.NewWorker(q.Client, &tarry.WorkerConfig{Schedules: true})
		tarry.Handle(w, rides, func(context.Context, *tarry.Message[Ride]) error { return nil })
		if got := q.WorkAll(t.Context(), w); got != (tarrytest.Worked{Acked: 5}) || q.Now().After(hourly.End) {
			t.Errorf("%+v at %s", got, q.Now())
		}
	})
}

// TestAdvanceFarWithASchedule passes more instants than WorkAll would.
func TestAdvanceFarWithASchedule(t *testing.T) {
	tarrytest.SetMostHandled(t, 100)
	q := tarrytest.New(t)
	often, err := tarry.NewSchedule("often", "@every 1s", rides, Ride{})
	if _, failed := q.SetSchedule(t.Context(), often, ""); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	w := tarry.NewWorker(q.Client, &tarry.WorkerConfig{Schedules: true})
	handled := 0
	tarry.Handle(w, rides, func(context.Context, *tarry.Message[Ride]) error { handled++; return nil })
	q.Start(t.Context(), w)
	if q.Advance(10 * time.Minute); handled != 600 {
		t.Errorf("%d messages in ten minutes", handled)
	}
}

// TestAdvanceWakesWorkersOfTheTest has workers that the kit knows nothing of.
func TestAdvanceWakesWorkersOfTheTest(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		begin := q.Now()
		done := make(chan time.Duration)
		w := worker(q, func(context.Context, *tarry.Message[Ride]) error {
			done <- q.Now().Sub(begin)
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		push(t, q, rides, Ride{}, tarry.In(48*time.Hour))
		q.Advance(48 * time.Hour)
		if at := <-done; at != 48*time.Hour {
			t.Errorf("handled after %s", at)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestTimeDoesNotPassByItself has the clock stand while real time passes.
func TestTimeDoesNotPassByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tarrytest.New(t)
		var h handled
		q.Start(t.Context(), worker(q, h.handle))
		push(t, q, rides, Ride{ID: "x"}, tarry.In(time.Millisecond))
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if h.String() != "" {
			t.Error("it was handled")
		}
		if q.Advance(time.Millisecond); h.String() != "x" {
			t.Error("it was not handled")
		}
	})
}

// TestSleepMovesTheClockOfABubble has the test sleep, as the code under test may.
func TestSleepMovesTheClockOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tarrytest.NewInBubble(t)
		var h handled
		q.Start(t.Context(), worker(q, h.handle))
		push(t, q, rides, Ride{ID: "x"}, tarry.At(time.Now().Add(48*time.Hour)))
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if h.String() != "x" {
			t.Errorf("handled %q", &h)
		}
	})
}

// TestWorkWaitsForHandlers has handlers that take long, and leases of others.
func TestWorkWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tarrytest.New(t)
		push(t, q, thanks, "leased by the test")
		if got, err := q.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{thanks.Queue()}, Max: 1}); err != nil || len(got.Messages) != 1 {
			t.Error(got, err)
		}
		push(t, q, rides, Ride{})
		w := worker(q, func(ctx context.Context, m *tarry.Message[Ride]) error {
			time.Sleep(time.Minute)
			_, err := thanks.Push(ctx, q.Client, "thank you")
			return err
		})
		tarry.Handle(w, thanks, func(context.Context, *tarry.Message[string]) error { return nil })
		if got := q.Work(t.Context(), w); got.Acked != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestWorkThatCannotEnd(t *testing.T) {
	tarrytest.SetMostHandled(t, 1000)
	q := tarrytest.New(t)
	again := func(context.Context, *tarry.Message[Ride]) error { return tarry.Snooze(0) }
	push(t, q, rides, Ride{})
	said := failure(t, func(f testing.TB) {
		w := worker(q, again)
		ended, stop := context.WithCancel(t.Context())
		stop()
		c := tarrytest.New(f)
		push(t, c, rides, Ride{})
		c.Work(t.Context(), worker(c, again))
		c.Work(ended, w)
		c.Work(t.Context(), w)
		c.Work(t.Context(), tarry.NewWorker(c.Client, nil))
		c.Advance(-1)

		begin := c.Now()
		often, err := tarry.NewSchedule("often", "@every 1s", rides, Ride{})
		if _, failed := c.SetSchedule(t.Context(), often, ""); err != nil || failed != nil {
			t.Error(err, failed)
		}
		w = tarry.NewWorker(c.Client, &tarry.WorkerConfig{Schedules: true})
		tarry.Handle(w, rides, func(context.Context, *tarry.Message[Ride]) error { return nil })
		if c.WorkAll(t.Context(), w); c.Now().Sub(begin) > time.Hour {
			t.Errorf("it took until %s", c.Now())
		}
	})
	if n := strings.Count(said, "there is always something due"); n != 2 {
		t.Errorf("it said %d times that there is always something due:\n%s", n, said)
	}
	for _, want := range []string{
		"context canceled",
		"a worker runs once",
		"no handler is registered",
		"the clock cannot go back from ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}
}
