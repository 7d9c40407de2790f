package tarry_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// A handler that hangs and ignores its context takes one slot, however often its lease
// lapses: its message is not begun again beside it, and others go on.
func TestHungHandlerTakesOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		c := tarry.New(memengine.New(nil), &tarry.Config{Logger: log.logger()})
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 2, HandlerTimeout: time.Second / 2, LeaseTTR: time.Second, Observer: rec.observe})
		hang := make(chan struct{})
		var hung, others atomic.Int32
		var attempts list[uint32]
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			if m.Body != "hangs" {
				others.Add(1)
				return nil
			}
			attempts.add(m.Attempt)
			if hung.Add(1) == 1 {
				<-hang // whatever its context says
			}
			return nil
		})
		stop := run(t, w)
		p := push(t, c, "q", "hangs", tarry.Priority(0))
		pass(time.Millisecond)
		for range 9 {
			push(t, c, "q", "x", tarry.In(10*time.Second))
		}
		pass(5*time.Second + 400*time.Millisecond)
		if n := len(rec.of(tarry.Stuck)); n != 0 {
			t.Errorf("%d handlers are stuck before 5 s after the end of their context", n)
		}
		pass(10 * time.Minute)
		if hung.Load() != 1 || others.Load() != 9 {
			t.Errorf("the message that hangs was begun %d times, want 1; %d of 9 others were handled", hung.Load(), others.Load())
		}
		if e := rec.one(t, tarry.Stuck); e.ID != p.ID || e.Queue != "q" || e.Duration != 5*time.Second+time.Second/2 || !errors.Is(e.Err, tarry.ErrHandlerTimeout) {
			t.Errorf("stuck: %+v", e)
		}
		if len(rec.of(tarry.Unstuck)) != 0 {
			t.Error("it has not returned yet")
		}
		if n := len(rec.of(tarry.Snoozed)); n < 10 || n > 200 {
			t.Errorf("it was put off %d times in ten minutes", n)
		}
		close(hang)
		pass(10 * time.Second)
		if e := rec.one(t, tarry.Unstuck); e.ID != p.ID || e.Duration < 10*time.Minute {
			t.Errorf("unstuck: %+v", e)
		}
		gone(t, c, p)
		if got := attempts.all(); len(got) != 2 || got[1] != 2 {
			t.Errorf("begun at attempts %v, want 1 and, after one lapse, 2", got)
		}
		stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "a handler is stuck"); n != 1 {
			t.Errorf("%d lines say that it is stuck", n)
		}
		if n := strings.Count(log.String(), "came again"); n < 2 || n > 13 {
			t.Errorf("%d lines in ten minutes say that it came again", n)
		}
	})
}

// What one process is stuck with another handles once the lease has lapsed, and soon.
func TestAnotherProcessTakesWhatHangs(t *testing.T) {
	eng := memengine.New(nil)
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		hang := make(chan struct{})
		var here, there atomic.Int32
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{HandlerTimeout: time.Minute, LeaseTTR: 10 * time.Second, Observer: rec.observe})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			here.Add(1)
			<-hang
			return errors.New("too late to matter")
		})
		stop := run(t, w)
		p := push(t, c, "q", "x")
		pass(59 * time.Second)

		other := tarry.New(eng, nil)
		w2 := tarry.NewWorker(other, nil)
		tarry.Handle(w2, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			there.Add(1)
			return nil
		})
		stop2 := run(t, w2)
		if there.Load() != 0 {
			t.Error("handled by another while the handler's time ran")
		}
		pass(2 * time.Minute)
		if here.Load() != 1 || there.Load() != 1 {
			t.Errorf("begun %d times here, %d there; want 1 each", here.Load(), there.Load())
		}
		gone(t, c, p)
		close(hang)
		synctest.Wait()
		rec.one(t, tarry.LeaseLost)
		stop()
		stop2()
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The workers of a client know of each other's handlers.
func TestHandlersOfAProcessDoNotRunBesideThemselves(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		hang := make(chan struct{})
		var begun atomic.Int32
		handler := func(context.Context, *tarry.Message[string]) error {
			if begun.Add(1) == 1 {
				<-hang
			}
			return nil
		}
		var stops []func()
		for range 2 {
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1, HandlerTimeout: time.Second, LeaseTTR: time.Second})
			tarry.Handle(w, bytesTopic, handler)
			stops = append(stops, run(t, w))
		}
		p := push(t, c, "q", "x")
		pass(time.Minute)
		if begun.Load() != 1 {
			t.Errorf("begun %d times beside itself", begun.Load())
		}
		close(hang)
		pass(10 * time.Second)
		gone(t, c, p)
		if begun.Load() != 2 {
			t.Errorf("begun %d times", begun.Load())
		}
		for _, stop := range stops {
			stop()
		}
	})
}

// A claim that meets a message whose handler runs here gives it back as it came.
func TestClaimOfWhatIsInHand(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.Key("k"), tarry.TTR(time.Second))
		hang := make(chan struct{})
		done := make(chan error, 1)
		hung := func(context.Context, *tarry.Message[string]) error { <-hang; return nil }
		go func() {
			done <- bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), hung, tarry.HandlerTimeout(time.Second))
		}()
		pass(10 * time.Second)
		err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(context.Context, *tarry.Message[string]) error {
			t.Error("begun beside itself")
			return nil
		})
		if !errors.Is(err, tarry.ErrLeased) || !strings.Contains(err.Error(), "still runs in this process") {
			t.Errorf("claim: %v", err)
		}
		if info, err := c.Get(t.Context(), tarry.ByKey("k").Of("q")); err != nil || info.State != tarry.Ready || info.Attempt != 1 {
			t.Errorf("the message is %s at attempt %d, %v", info.State, info.Attempt, err)
		}
		close(hang)
		if err := <-done; !errors.Is(err, tarry.ErrLeaseLost) {
			t.Errorf("the claim that hung: %v", err)
		}
	})
}

// Handlers that a drain leaves behind are told of as stuck.
func TestDrainTellsOfStuckHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{DrainTimeout: time.Second, Observer: rec.observe})
		hang := make(chan struct{})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { <-hang; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		push(t, c, "q", "x")
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
			t.Errorf("Run: %v", err)
		}
		rec.one(t, tarry.Stuck)
		close(hang)
		synctest.Wait()
		rec.one(t, tarry.Unstuck)
	})
}

// A lease that is stuck with is not renewed, though the engine answers again.
func TestLeaseOfAStuckHandlerIsNotKept(t *testing.T) {
	s := newStage()
	var down atomic.Bool
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if down.Load() {
			return nil, engine.ErrUnavailable
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second, Observer: rec.observe})
		hang := make(chan struct{})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { <-hang; return nil })
		stop := run(t, w)
		p := push(t, c, "q", "x")
		down.Store(true)
		pass(10 * time.Second)
		down.Store(false)
		pass(time.Minute)
		rec.one(t, tarry.LeaseLost)
		rec.one(t, tarry.Stuck)
		if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q")); err != nil || info.State == tarry.Leased {
			t.Errorf("the message is %s, %v; want it left to others", info.State, err)
		}
		close(hang)
		pass(time.Minute)
		stop()
	})
}
