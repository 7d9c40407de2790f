package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func names(n int) (queues []string) {
	for i := range n {
		queues = append(queues, fmt.Sprint("q", i))
	}
	return queues
}

func leaserOf(t *testing.T, c *tarry.Client, queues []string) *tarry.Leaser {
	t.Helper()
	l, err := c.Leaser(queues)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// turn leases, and returns how many messages came of each queue, which it acks.
func turn(t *testing.T, c *tarry.Client, l *tarry.Leaser, req tarry.LeaseRequest) (of map[string]int, next time.Time) {
	t.Helper()
	got, err := l.Lease(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	of = make(map[string]int)
	for _, m := range got.Messages {
		of[m.Queue]++
		if _, err := c.Settle(t.Context(), []tarry.Settlement{{Token: m.Token, Do: engine.Ack}}); err != nil {
			t.Error(err)
		}
	}
	return of, got.NextDue
}

// A call asks for what may have come, whatever other queues there are.
func TestLeaserAsksEachQueueOnce(t *testing.T) {
	s, asked := newStage(), new(atomic.Int32)
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		asked.Add(int32(len(wants)))
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		l := leaserOf(t, c, names(1000))
		defer l.Close()
		if of, _ := turn(t, c, l, tarry.LeaseRequest{Max: 10, Wait: time.Millisecond}); len(of) != 0 || asked.Load() != 1000 {
			t.Fatalf("%v; %d queues were asked", of, asked.Load())
		}
		for i := range 100 {
			start, due := time.Now(), time.Duration(i%3)*time.Second // before the call, or in it
			push(t, c, fmt.Sprint("q", i), "x", tarry.In(due))
			of, _ := turn(t, c, l, tarry.LeaseRequest{Max: 10, Wait: time.Minute})
			if len(of) != 1 || of[fmt.Sprint("q", i)] != 1 || time.Since(start) != due {
				t.Fatalf("%v after %v, want one of q%d after %v", of, time.Since(start), i, due)
			}
		}
		if n := asked.Load(); n > 1000+400 {
			t.Errorf("%d queues were asked for 100 messages", n)
		}
	})
}

// A wait that ends empty lasts as long as asked, and tells when something falls due.
func TestLeaserWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		l := leaserOf(t, c, names(3))
		defer l.Close()
		due := push(t, c, "q1", "x", tarry.In(time.Hour)).Due
		for range 3 {
			start := time.Now()
			if of, next := turn(t, c, l, tarry.LeaseRequest{Max: 1, Wait: 20 * time.Second}); len(of) != 0 || time.Since(start) != 20*time.Second || !next.Equal(due) {
				t.Errorf("%v after %v, next %v", of, time.Since(start), next)
			}
		}
		start := time.Now()
		if _, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 1}); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A call fills its room where there is enough at once, and takes of each queue what
// there is room for.
func TestLeaserFills(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		l := leaserOf(t, c, names(900))
		defer l.Close()
		for i := range 900 {
			push(t, c, fmt.Sprint("q", i), "x")
		}
		pushBurst(t, c, "q7", 99)
		room := map[string]int{"q7": 3, "q8": 0}
		of, _ := turn(t, c, l, tarry.LeaseRequest{Max: 1000, Wait: time.Minute, Room: room})
		if len(of) != 899 || of["q7"] != 3 || of["q8"] != 0 {
			t.Errorf("of %d queues, %d and %d", len(of), of["q7"], of["q8"])
		}
		start := time.Now() // q8 has something, but no room
		if of, _ := turn(t, c, l, tarry.LeaseRequest{Max: 1000, Wait: time.Second, Room: map[string]int{"q7": 0, "q8": 0}}); len(of) != 0 || time.Since(start) != time.Second {
			t.Errorf("%v after %v", of, time.Since(start))
		}
		if of, _ := turn(t, c, l, tarry.LeaseRequest{Max: 1000, Wait: time.Second}); of["q7"] != 97 || of["q8"] != 1 {
			t.Errorf("%v", of)
		}
	})
}

// A busy queue leaves the others their turn.
func TestLeaserIsFair(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		l := leaserOf(t, c, names(21))
		defer l.Close()
		pushBurst(t, c, "q0", 1000)
		for i := 1; i <= 20; i++ {
			push(t, c, fmt.Sprint("q", i), "x")
		}
		others := 0
		for range 4 {
			of, _ := turn(t, c, l, tarry.LeaseRequest{Max: 10, Wait: time.Second})
			delete(of, "q0")
			others += len(of)
		}
		if others < 20 {
			t.Errorf("%d of 20 other queues came in 40 messages", others)
		}
	})
}

// What comes when its call has been left, or has ended, goes back with its attempt; what
// comes into a later call is that one's, as far as it has room.
func TestLeaserLeavesNothingBehind(t *testing.T) {
	s := newStage()
	var held atomic.Bool
	release := make(chan struct{})
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		if held.Load() {
			<-release
		}
		return g, err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		release = make(chan struct{})
		l := leaserOf(t, c, names(2))
		defer l.Close()
		pushBurst(t, c, "q0", 5)
		held.Store(true)
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		if _, err := l.Lease(ctx, tarry.LeaseRequest{Max: 5, Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		held.Store(false)
		got := make(chan tarry.LeasedMessages, 1)
		go func() {
			l, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 2, Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		close(release)
		if l := <-got; len(l.Messages) != 2 || l.Messages[0].Attempt != 1 {
			t.Errorf("%+v", l.Messages)
		}
		synctest.Wait()
		if q, err := c.Queue(t.Context(), "q0"); err != nil || q.Leased != 2 || q.Ready != 3 {
			t.Errorf("%+v, %v", q, err)
		}
		again, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 5, Wait: time.Minute})
		if err != nil || len(again.Messages) != 3 {
			t.Fatalf("%+v, %v", again, err)
		}
		for _, m := range again.Messages {
			if m.Attempt != 1 {
				t.Errorf("attempt %d", m.Attempt)
			}
		}
	})
}

func TestLeaserTellsWhatIsWrong(t *testing.T) {
	s := newStage()
	broken := errors.New("broken")
	s.lease = func(context.Context, []engine.Want) (engine.Grant, error) { return engine.Grant{}, broken }
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		for _, queues := range [][]string{nil, {"-"}, names(10_001)} {
			if _, err := c.Leaser(queues); !errors.Is(err, tarry.ErrInvalid) {
				t.Errorf("%d queues: %v", len(queues), err)
			}
		}
		l := leaserOf(t, c, names(3))
		for _, req := range []tarry.LeaseRequest{{}, {Max: 1001}, {Max: 1, Wait: -1}, {Max: 1, Room: map[string]int{"q0": -1}}} {
			if _, err := l.Lease(t.Context(), req); !errors.Is(err, tarry.ErrInvalid) {
				t.Errorf("%+v: %v", req, err)
			}
		}
		if _, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 1, Wait: time.Minute}); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		l.Close()
		l.Close()
		if _, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 1}); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		s.lease = s.Engine.Lease
		l = leaserOf(t, c, names(3))
		done := make(chan error, 1)
		go func() { _, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 1, Wait: time.Hour}); done <- err }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("the client was closed: %v", err)
		}
		l.Close()
	})
}

// What a call brings that an earlier turn left under way is for a turn that wants such
// leases, and goes back in another.
func TestLeaserTakesNoLeaseThatItDidNotAskFor(t *testing.T) {
	for _, other := range []tarry.LeaseOptions{{TTR: time.Hour}, {TTR: time.Second, Remote: true}} {
		s := newStage()
		var held atomic.Bool
		var release chan struct{}
		s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
			g, err := s.Engine.Lease(ctx, wants)
			if held.Swap(false) {
				<-release
			}
			return g, err
		}
		bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
			release = make(chan struct{})
			l := leaserOf(t, c, names(2))
			defer l.Close()
			push(t, c, "q0", "x")
			held.Store(true)
			ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer leave()
			if _, err := l.Lease(ctx, tarry.LeaseRequest{Max: 5, Wait: time.Minute, LeaseOptions: tarry.LeaseOptions{TTR: time.Second}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			time.AfterFunc(500*time.Millisecond, func() { close(release) })
			got, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 5, Wait: time.Minute, LeaseOptions: other})
			if err != nil || len(got.Messages) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if m := got.Messages[0]; m.Attempt != 1 || m.Deadline.Sub(got.Now) != other.TTR {
				t.Errorf("attempt %d, leased for %s by a turn that wants %+v", m.Attempt, m.Deadline.Sub(got.Now), other)
			}
		})
	}
}

// An empty answer tells what time it is, and not when the engine was asked.
func TestLeaserTellsTheTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		l := leaserOf(t, c, names(2))
		defer l.Close()
		for range 3 {
			if got, err := l.Lease(t.Context(), tarry.LeaseRequest{Max: 1, Wait: time.Minute}); err != nil || time.Since(got.Now).Abs() > time.Millisecond {
				t.Errorf("it is %s, and %s by the answer, %v", time.Now(), got.Now, err)
			}
		}
	})
}
