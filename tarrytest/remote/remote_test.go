package remote_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/tarrytest"
	"github.com/tarryhq/tarry/tarrytest/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rides = tarry.NewTopic[string]("rides")

// open returns a client of a server, as the code under test has one.
func open(t *testing.T, url string) *tarry.Client {
	t.Helper()
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// worker returns a worker that handles rides.
func worker(c *tarry.Client, handle func(ride string) error) *tarry.Worker {
	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, rides, func(_ context.Context, m *tarry.Message[string]) error { return handle(m.Body) })
	return w
}

func push(t *testing.T, c *tarry.Client, ride string, opts ...tarry.PushOption) {
	t.Helper()
	if _, err := rides.Push(t.Context(), c, ride, opts...); err != nil {
		t.Fatal(err)
	}
}

func TestDaysOverHTTP(t *testing.T) {
	q := tarrytest.New(t)
	c := open(t, remote.New(t, q).URL)
	push(t, c, "7", tarry.In(48*time.Hour), tarry.Key("7"))
	tarrytest.RequirePushed(t, q, rides, "7", tarry.In(48*time.Hour), tarry.Key("7"))

	fails := func(string) error { return errors.New("closed for lunch") }
	works := func(string) error { return nil }
	for _, step := range []struct {
		advance time.Duration
		handle  func(string) error
		want    tarrytest.Worked
	}{
		{48*time.Hour - time.Millisecond, works, tarrytest.Worked{}},
		{time.Millisecond, fails, tarrytest.Worked{Retried: 1}},
		{0, works, tarrytest.Worked{}},
		{2 * time.Second, works, tarrytest.Worked{Acked: 1}},
	} {
		q.Advance(step.advance)
		if got := q.Work(t.Context(), worker(c, step.handle)); got != step.want {
			t.Errorf("%+v, want %+v", got, step.want)
		}
	}
}

// TestWorkerThatWaits has a worker with a long poll at the server when the clock moves.
func TestWorkerThatWaits(t *testing.T) {
	q := tarrytest.New(t)
	c := open(t, remote.New(t, q).URL)
	begin := q.Now()
	var at []time.Duration
	q.Start(t.Context(), worker(c, func(string) error {
		at = append(at, q.Now().Sub(begin))
		return nil
	}))
	for i := range 3 {
		push(t, c, "", tarry.In(time.Duration(i+1)*time.Hour))
	}
	q.Advance(time.Hour)
	if len(at) != 1 {
		t.Errorf("after an hour it handled %v", at)
	}
	q.Advance(47 * time.Hour)
	if len(at) != 3 || at[0] != time.Hour || at[1] != 2*time.Hour || at[2] != 3*time.Hour {
		t.Errorf("handled after %v", at)
	}
}

func TestFaults(t *testing.T) {
	q := tarrytest.New(t)
	s := remote.New(t, q)
	c := open(t, s.URL)
	s.Fail(2, 503)
	for range 2 {
		if _, err := rides.Push(t.Context(), c, ""); !errors.Is(err, tarry.ErrUnavailable) {
			t.Errorf("with a 503: %v", err)
		}
	}
	release := s.Hang(1)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		for s.Faults() > 0 { // until the request is there
			time.Sleep(time.Millisecond)
		}
		giveUp()
	}()
	if _, err := rides.Push(ctx, c, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("without an answer: %v", err)
	}
	release()
	q.Fail(tarry.ErrNoSpace)
	if _, err := rides.Push(t.Context(), c, ""); !errors.Is(err, tarry.ErrNoSpace) {
		t.Errorf("with a full disk: %v", err)
	}
	q.Fail(nil)
	tarrytest.RequireNothingPushed(t, q)
	push(t, c, "7")
	tarrytest.RequirePushed(t, q, rides, "7")
}

// TestHangsToTheEnd ends while a request has no answer.
func TestHangsToTheEnd(t *testing.T) {
	t.Run("test", func(t *testing.T) {
		s := remote.New(t, tarrytest.New(t))
		c := open(t, s.URL)
		s.Hang(1)
		q := tarrytest.New(t)
		q.Start(t.Context(), worker(c, func(string) error { return nil }))
	})
}
