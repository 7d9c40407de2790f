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

// Leases that wait name so many queues together and no more, until some have left.
func TestQueuesOfWaitsAreBounded(t *testing.T) {
	for name, eng := range map[string]engine.Engine{"here": memengine.New(nil), "on the other side": newWaiter()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tarry.New(eng, &tarry.Config{MaxWaitQueues: 100})
				ctx, leave := context.WithCancel(t.Context())
				wait := func(ctx context.Context, n int) error {
					_, err := c.Lease(ctx, tarry.LeaseRequest{Queues: names(n), Max: 1, Wait: time.Hour})
					return err
				}
				ended := make(chan error, 2)
				for range 2 {
					go func() { ended <- wait(ctx, 50) }()
				}
				synctest.Wait()
				if err := wait(ctx, 17); !errors.Is(err, tarry.ErrLimit) || !strings.Contains(err.Error(), "117 queues; at most 100") {
					t.Errorf("17 more: %v", err)
				}
				soon, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := wait(soon, 16); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a wait of few queues: %v", err)
				}
				leave()
				<-ended
				<-ended
				soon, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := wait(soon, 100); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("when they have left: %v", err)
				}
				if err := wait(t.Context(), 101); !errors.Is(err, tarry.ErrLimit) {
					t.Errorf("one that names too many by itself: %v", err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A Leaser counts while it is open, whether or not it leases.
func TestQueuesOfLeasersAreBounded(t *testing.T) {
	c := tarry.New(memengine.New(nil), &tarry.Config{MaxWaitQueues: 100})
	defer c.Close()
	l := leaserOf(t, c, names(60))
	if _, err := c.Leaser(names(41)); !errors.Is(err, tarry.ErrLimit) {
		t.Errorf("another: %v", err)
	}
	l.Close()
	leaserOf(t, c, names(100)).Close()
}

// A lease of few messages asks many queues at a time, and what they bring beyond it is
// there for others.
func TestLeaseOfFewAsksManyQueues(t *testing.T) {
	s := newStage()
	var calls atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		calls.Add(1)
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		queues := names(10_000)
		for _, most := range []int{1, 10} {
			calls.Store(0)
			if got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: queues, Max: most, Wait: time.Second}); err != nil || len(got.Messages) != 0 {
				t.Fatalf("%v, %v", got.Messages, err)
			}
			if n := calls.Load(); n > 120 {
				t.Errorf("%d calls of the engine for a lease of %d", n, most)
			}
		}
		for _, q := range queues[5000:] {
			push(t, c, q, "x")
		}
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: queues, Max: 3, Wait: time.Second})
		if n := len(got.Messages); err != nil || n < 1 || n > 3 {
			t.Fatalf("%d messages, %v", n, err)
		}
		synctest.Wait()
		leased := 0
		for _, q := range queues[5000:] {
			info, err := c.Queue(t.Context(), q)
			if err != nil || info.Ready+info.Leased != 1 {
				t.Fatalf("%+v, %v", info, err)
			}
			leased += int(info.Leased)
		}
		if n := len(got.Messages); leased != n {
			t.Errorf("%d are leased, and %d came", leased, n)
		}
	})
}

// A turn without a wait is not over before a queue that another's call is asking has
// been asked for it.
func TestLeaserWaitsForTheCallOfAnother(t *testing.T) {
	s, calls := newStage(), new(atomic.Int32)
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		let := make(chan struct{})
		s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
			if calls.Add(1) == 1 {
				<-let
			}
			return s.Engine.Lease(ctx, wants)
		}
		push(t, c, "q", "x")
		push(t, c, "q", "y")
		got := make(chan int, 2)
		for range 2 {
			l := leaserOf(t, c, []string{"q"})
			defer l.Close()
			go func() {
				g, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 1})
				if err != nil {
					t.Error(err)
				}
				got <- len(g.Messages)
			}()
			synctest.Wait()
		}
		select {
		case n := <-got:
			t.Errorf("%d messages before the engine was asked", n)
		default:
		}
		close(let)
		if a, b := <-got, <-got; a != 1 || b != 1 {
			t.Errorf("%d and %d messages of two", a, b)
		}
	})
}
