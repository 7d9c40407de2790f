package tarry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// suspectWaits runs f while a worker waits with a suspect for its first result, whose
// settlement hangs until confirm is called. A suspect has lapsed twice, so it may kill its
// process. end ends the worker and returns the error of Run.
func suspectWaits(t *testing.T, f func(t *testing.T, c *tarry.Client, begun *list[string], confirm func(), end func() error)) {
	s := newStage()
	var confirmed chan struct{}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Ack {
			<-confirmed
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		confirmed = make(chan struct{})
		confirm := sync.OnceFunc(func() { close(confirmed) })
		defer confirm()
		push(t, c, "q", "suspect")
		lease := func() {
			got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, LeaseOptions: tarry.LeaseOptions{TTR: time.Second}})
			if err != nil || len(got.Messages) != 1 {
				t.Fatal(got, err)
			}
		}
		lease()
		pass(time.Minute)
		lease() // lapses for the second time while the worker waits for its first result
		begun := new(list[string])
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			begun.add(m.Body)
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		push(t, c, "q", "innocent")
		pass(5 * time.Second)
		if got := begun.all(); len(got) != 1 || got[0] != "innocent" {
			t.Errorf("begun before the first result is confirmed: %q", got)
		}
		f(t, c, begun, confirm, func() error { cancel(); return <-ended })
	})
}

func TestSuspectWaitsForResults(t *testing.T) {
	suspectWaits(t, func(t *testing.T, c *tarry.Client, begun *list[string], confirm func(), end func() error) {
		confirm()
		pass(time.Second)
		if got := begun.all(); len(got) != 2 || got[1] != "suspect" {
			t.Errorf("begun: %q", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestDrainReleasesASuspect: a drain does not wait for the results that a suspect waits for.
func TestDrainReleasesASuspect(t *testing.T) {
	suspectWaits(t, func(t *testing.T, c *tarry.Client, begun *list[string], confirm func(), end func() error) {
		start := time.Now()
		if err := end(); !errors.Is(err, tarry.ErrUnavailable) { // the first result is not confirmed
			t.Error(err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("the drain took %s", took)
		}
		q, err := c.Queue(t.Context(), "q")
		if err != nil || q.Ready != 1 || begun.len() != 1 {
			t.Errorf("%+v, %v; begun: %q", q, err, begun.all())
		}
	})
}

// lapsing is a generous engine whose last message has lapsed twice.
type lapsing struct{ *generous }

func (l lapsing) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	got, err := l.generous.LeaseWait(ctx, w)
	if n := len(got.Messages); n > 1 {
		m := &got.Messages[n-1]
		m.Attempt, m.LastError, m.Isolate = 3, engine.Lapsed, true
	}
	return got, err
}

// TestSuspectGoesFirst: a suspect does not wait for a slot behind others, which may kill the
// process meanwhile.
func TestSuspectGoesFirst(t *testing.T) {
	bubbleOn(t, lapsing{&generous{newWaiter()}}, func(t *testing.T, c *tarry.Client) {
		pushBurst(t, c, "q", 4)
		var begun list[uint32]
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			begun.add(m.Attempt)
			time.Sleep(10 * time.Millisecond)
			return nil
		}, tarry.Concurrency(1))
		stop := run(t, w)
		pass(time.Minute)
		if got := begun.all(); len(got) != 4 || got[0] != 3 && got[1] != 3 {
			t.Errorf("the attempts begin in the order %v", got)
		}
		stop()
	})
}
