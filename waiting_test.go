package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// hanging returns a stage on which a Lease that asks for one of the queues hangs,
// whatever its context says, until it is let go; it then does what it was asked.
func hanging(queues ...string) (s *stage, letGo func()) {
	s = newStage()
	gate := make(chan struct{})
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		for _, w := range wants {
			if slices.Contains(queues, w.Queue) {
				<-gate
			}
		}
		return s.Engine.Lease(context.WithoutCancel(ctx), wants)
	}
	return s, sync.OnceFunc(func() { close(gate) })
}

// outlast is longer than any call of the engine is waited for.
const outlast = time.Minute

func TestQueueThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, letGo := hanging("bad")
		defer letGo()
		c := tarry.New(s, nil)
		defer c.Close()
		bad := make(chan error, 2)
		for _, wait := range []time.Duration{0, time.Hour} {
			go func() {
				_, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"bad"}, Max: 1, Wait: wait})
				bad <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		for i := range 100 {
			push(t, c, "good", fmt.Sprint(i), tarry.In(time.Second))
			l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"good"}, Max: 1, Wait: time.Minute})
			if err != nil || len(l.Messages) != 1 {
				t.Fatalf("lease of the good queue: %+v, %v", l, err)
			}
		}
		if d := time.Since(start); d > 110*time.Second {
			t.Errorf("100 messages of the good queue, a second apart, took %s", d)
		}
		start = time.Now()
		push(t, c, "good", "x")
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"bad", "good"}, Max: 1, Wait: time.Minute})
		if err != nil || len(l.Messages) != 1 || time.Since(start) > 2*time.Second {
			t.Errorf("lease of both queues: %+v, %v after %s", l, err, time.Since(start))
		}
		pass(outlast)
		for range 2 {
			select {
			case err := <-bad:
				if !errors.Is(err, tarry.ErrUnavailable) {
					t.Errorf("lease of the bad queue: %v", err)
				}
			default:
				t.Fatal("who waits for the bad queue is told nothing")
			}
		}
	})
}

func TestEngineThatHangsLetsWaitersAndCloseGo(t *testing.T) {
	var queues []string
	for i := range 500 {
		queues = append(queues, fmt.Sprint("q", i))
	}
	synctest.Test(t, func(t *testing.T) {
		s, letGo := hanging(queues...)
		var underWay atomic.Int32
		hang := s.lease
		s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
			underWay.Add(1)
			defer underWay.Add(-1)
			return hang(ctx, wants)
		}
		c := tarry.New(s, nil)
		p := push(t, c, "q0", "x")
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"q0"}, Max: 1, Wait: time.Hour})
			left <- err
		}()
		errs := make(chan error, len(queues))
		for _, q := range queues {
			go func() {
				_, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{q}, Max: 1, Wait: 10 * time.Hour})
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
			t.Errorf("whose context ended: %v after %s", err, time.Since(start))
		}
		for range queues {
			if err := <-errs; !errors.Is(err, tarry.ErrUnavailable) {
				t.Errorf("lease: %v", err)
			}
		}
		if d := time.Since(start); d > outlast {
			t.Errorf("all were told within %s", d)
		}
		for range 5 { // more of them hardly make more calls
			if _, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: queues, Max: 1, Wait: time.Hour}); !errors.Is(err, tarry.ErrUnavailable) {
				t.Errorf("lease: %v", err)
			}
		}
		if n := underWay.Load(); n > 200 {
			t.Errorf("%d calls hang", n)
		}
		start = time.Now()
		if err := c.Close(); err != nil || time.Since(start) > 10*time.Second {
			t.Errorf("close: %v after %s", err, time.Since(start))
		}
		letGo()
		synctest.Wait()
		info, err := s.Get(t.Context(), engine.Ref{Queue: "q0", ID: p.ID})
		if err != nil || info.State != engine.Ready || info.Attempt != 0 {
			t.Errorf("what the abandoned call brought is %s at attempt %d, %v; want it given back", info.State, info.Attempt, err)
		}
	})
}

// failing returns a stage that cannot lease from a queue while down is set.
func failing(queue string) (*stage, *atomic.Bool) {
	s, down := newStage(), new(atomic.Bool)
	s.lease = func(ctx context.Context, wants []engine.Want) (g engine.Grant, err error) {
		for _, w := range wants {
			one, err := s.Engine.Lease(ctx, []engine.Want{w})
			if err != nil {
				return engine.Grant{}, err
			}
			if w.Queue == queue && down.Load() {
				one.Queues[0] = engine.Granted{Err: engine.ErrUnavailable}
			}
			g.Now = one.Now
			g.Queues = append(g.Queues, one.Queues[0])
		}
		return g, nil
	}
	return s, down
}

func TestEngineThatIsDownIsNotEmpty(t *testing.T) {
	s, down := failing("q")
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		stop := run(t, withHandler(tarry.NewWorker(c, nil)))
		defer stop()
		down.Store(true)
		push(t, c, "q", "x")
		for i := range 50 {
			pass(time.Duration(i) * 100 * time.Millisecond)
			l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1})
			if !errors.Is(err, tarry.ErrUnavailable) {
				t.Fatalf("without a wait: %+v, %v", l, err)
			}
			l, err = c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Millisecond})
			if !errors.Is(err, tarry.ErrUnavailable) {
				t.Fatalf("after a wait: %+v, %v", l, err)
			}
		}
	})
}

func TestQueueThatFailsDoesNotEndTheWaitForOthers(t *testing.T) {
	s, down := failing("bad")
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		down.Store(true)
		push(t, c, "good", "x", tarry.In(time.Minute))
		req := tarry.LeaseRequest{Queues: []string{"bad", "good"}, Max: 1, Wait: 10 * time.Second}
		if l, err := c.Lease(t.Context(), req); !errors.Is(err, tarry.ErrUnavailable) {
			t.Errorf("with nothing due: %+v, %v", l, err)
		}
		req.Wait = time.Hour
		start := time.Now()
		l, err := c.Lease(t.Context(), req)
		if err != nil || len(l.Messages) != 1 || time.Since(start) != 50*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
	})
}

// A wait whose end falls while the engine is being asked for it gets the answer.
func TestWaitThatEndsTakesWhatIsUnderWay(t *testing.T) {
	s := newStage()
	var released atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		time.Sleep(time.Second)
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		released.Add(int32(len(in)))
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.In(10*time.Second))
		start := time.Now()
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: 10*time.Second + time.Millisecond})
		if err != nil || len(l.Messages) != 1 || time.Since(start) != 11*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
		pass(time.Minute)
		if n := released.Load(); n != 0 {
			t.Errorf("%d leases were given back", n)
		}
	})
}

// When the end of a wait and the due time of a message are met together, as after a
// suspend of the process, either the message is leased and handed out or it is left
// alone.
func TestWaitThatEndsWithTheDueTimeLeasesForNobody(t *testing.T) {
	s := newStage()
	var leased, released atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		for _, q := range g.Queues {
			leased.Add(int32(len(q.Messages)))
		}
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		released.Add(int32(len(in)))
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		got := 0
		for i := range 200 {
			q := fmt.Sprint("q", i)
			push(t, c, q, "x", tarry.In(time.Second))
			l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{q}, Max: 1, Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			got += len(l.Messages)
			synctest.Wait()
		}
		if int(leased.Load()) != got || released.Load() != 0 {
			t.Errorf("%d messages were leased, %d handed out, %d given back", leased.Load(), got, released.Load())
		}
	})
}
