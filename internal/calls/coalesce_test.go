package calls

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var errOdd = errors.New("odd")

// half answers each even number with its half, slowly.
func half(calls *atomic.Int32) func(context.Context, []int) ([]halved, error) {
	return func(ctx context.Context, in []int) ([]halved, error) {
		calls.Add(1)
		time.Sleep(time.Second)
		out := make([]halved, len(in))
		for i, n := range in {
			if out[i].n = n / 2; n%2 != 0 {
				out[i].err = errOdd
			}
		}
		return out, ctx.Err()
	}
}

type halved struct {
	n   int
	err error
}

func TestCoalescerGathersAndFailsSingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := NewCoalescer(40, 1, nil, half(&calls))
		var all sync.WaitGroup
		for i := range 101 {
			all.Go(func() {
				out, err := c.Do(t.Context(), i)
				if err != nil || out.n != i/2 || (out.err != nil) != (i%2 != 0) {
					t.Errorf("%d: %+v, %v", i, out, err)
				}
			})
			if i == 0 {
				synctest.Wait() // alone in the first call
			}
		}
		all.Wait()
		c.Wait()
		if calls.Load() != 4 { // 1, 40, 40, 20
			t.Errorf("%d calls, want 4", calls.Load())
		}
	})
}

func TestCoalescerCallerWhoLeavesHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := NewCoalescer(10, 1, nil, half(&calls))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		left, stayed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := c.Do(ctx, 2); left <- err }()
		go func() { _, err := c.Do(t.Context(), 4); stayed <- err }()
		if err := <-left; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who left got %v", err)
		}
		if err := <-stayed; err != nil {
			t.Errorf("who stayed got %v", err)
		}
		c.Wait()
		if _, err := c.Do(t.Context(), 6); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// Who leaves while others are served before him has not handed anything in: no call gets it, and he is
// told so. Who leaves a call that has it is not.
func TestCoalescerTakesBackWhatNoCallHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served []int
		c := NewCoalescer(10, 1, nil, func(_ context.Context, in []int) ([]int, error) {
			served = append(served, in...)
			time.Sleep(time.Second)
			return slices.Clone(in), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		errs := make([]error, 6)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				if i == 3 {
					_, errs[i] = c.Do(t.Context(), i)
				} else {
					_, errs[i] = c.Do(ctx, i)
				}
			})
			synctest.Wait() // the first has a call of its own
		}
		cancel()
		all.Wait()
		for i, err := range errs {
			var w *Withdrawn
			if withdrawn := errors.As(err, &w); withdrawn != (i != 0 && i != 3) || errors.Is(err, context.Canceled) != (i != 3) {
				t.Errorf("%d: %v, withdrawn: %t", i, err, withdrawn)
			}
		}
		c.Wait()
		if !slices.Equal(served, []int{0, 3}) {
			t.Errorf("calls had %v", served)
		}
	})
}

// Who waits while others are served before him when no more is taken is refused, and no call gets what he has
// handed in. Who is in a call is answered.
func TestCoalescerRefusesWhoWaitsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served []int
		c := NewCoalescer(10, 1, nil, func(_ context.Context, in []int) ([]int, error) {
			served = append(served, in...)
			time.Sleep(time.Second)
			return slices.Clone(in), nil
		})
		errs := make([]error, 4)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = c.Do(t.Context(), i) })
			synctest.Wait() // the first has a call of its own
		}
		c.Wait()
		all.Wait()
		for i, err := range errs {
			if (i == 0) != (err == nil) || i > 0 && !errors.Is(err, engine.ErrClosed) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if !slices.Equal(served, []int{0}) {
			t.Errorf("calls had %v", served)
		}
	})
}

// What the engine says of the outcome is told in the place of its own deadline.
func TestCoalescerKeepsHintsOfWhatIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hint := ""
		c := NewCoalescer(10, 1, nil, func(ctx context.Context, _ []int) ([]int, error) {
			<-ctx.Done()
			return nil, &engine.Error{Op: "push", Err: ctx.Err(), Hint: hint}
		})
		for _, hint = range []string{"", "nothing was pushed"} {
			_, err := c.Do(t.Context(), 1)
			var e *engine.Error
			if !errors.Is(err, ErrOverdue) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) && e.Hint != hint || e == nil && hint != "" {
				t.Errorf("with the hint %q: %v", hint, err)
			}
		}
		c.Wait()
	})
}

func TestCoalescerCallFails(t *testing.T) {
	boom := errors.New("boom")
	c := NewCoalescer(10, 1, nil, func(context.Context, []int) ([]int, error) { return nil, boom })
	if _, err := c.Do(t.Context(), 1); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	c.Wait()
}

func TestCoalescerKeepsLargeItemsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes [][]int
		c := NewCoalescer(10, 1, func(n *int) int { return *n }, func(_ context.Context, in []int) ([]int, error) {
			time.Sleep(time.Second)
			sizes = append(sizes, slices.Clone(in))
			return slices.Clone(in), nil
		})
		var all sync.WaitGroup
		for _, n := range []int{1, 5, 6, bytesMost * 2, 7, bytesMost - 7, 8} {
			all.Go(func() { _, _ = c.Do(t.Context(), n) })
			synctest.Wait()
		}
		all.Wait()
		want := [][]int{{1}, {5, 6}, {bytesMost * 2}, {7, bytesMost - 7}, {8}}
		if !reflect.DeepEqual(sizes, want) {
			t.Errorf("calls of %v, want %v", sizes, want)
		}
	})
}

// A second lane opens for a full call's worth, and for those who come while the call
// under way is slow; else they wait for it.
func TestCoalescerLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := NewCoalescer(3, 2, nil, half(&calls))
		var all sync.WaitGroup
		start := time.Now()
		ask := func(ends ...time.Duration) {
			for i, want := range ends {
				all.Go(func() {
					if out, err := c.Do(t.Context(), 2*i); err != nil || out.n != i {
						t.Errorf("%d: %+v, %v", i, out, err)
					}
					if took := time.Since(start); took != want {
						t.Errorf("%d of %d took %v, want %v", i, len(ends), took, want)
					}
				})
			}
			synctest.Wait()
		}
		ask(time.Second)
		ask(time.Second+slowLane, time.Second+slowLane) // together, once the first has shown to be slow
		time.Sleep(slowLane)
		synctest.Wait()
		ask(2 * time.Second) // no third lane
		all.Wait()

		start = time.Now()
		ask(time.Second)
		ask(time.Second, time.Second, time.Second) // a full call
		all.Wait()
		c.Wait()
		if calls.Load() != 5 {
			t.Errorf("%d calls, want 5", calls.Load())
		}
		if c.lanes.Running != 0 || c.lanes.slow != 0 {
			t.Errorf("%d lanes are left, %d slow ones", c.lanes.Running, c.lanes.slow)
		}
	})
}

// How many open a further lane depends on how many lanes there are.
func TestCoalescerLaneWorth(t *testing.T) {
	for lanes, worth := range map[int]int{2: laneWorth, 3: laneWorth / 2} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int32
			c := NewCoalescer(1000, lanes, nil, func(_ context.Context, in []int) ([]int, error) {
				calls.Add(1)
				time.Sleep(slowLane / 2)
				return slices.Clone(in), nil
			})
			var all sync.WaitGroup
			come := func(n int, want int32) {
				for range n {
					all.Go(func() { _, _ = c.Do(t.Context(), 1) })
				}
				synctest.Wait()
				if got := calls.Load(); got != want {
					t.Errorf("%d lanes: %d calls with %d more, want %d", lanes, got, n, want)
				}
			}
			come(1, 1)
			come(worth-1, 1)
			come(1, 2)
			all.Wait()
		})
	}
}

// A lane whose call has ended goes on with as many as are worth a call, or more than one call
// takes; fewer it leaves to the one under way.
func TestCoalescerLaneLeavesFew(t *testing.T) {
	const short, long = time.Millisecond, 3 * time.Millisecond
	for _, c := range []struct {
		name    string
		come    int
		bytes   int
		calls   int32 // begun when the short one has ended
		allEnds time.Duration
	}{
		{"few", laneWorth - 1, 1, 2, long + short},
		{"enough", laneWorth, 1, 3, long},
		{"more bytes than a call takes", 2, bytesMost, 3, long + short}, // one, and then one is few
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				type item struct {
					took  time.Duration
					bytes int
				}
				co := NewCoalescer(1000, 2, func(i *item) int { return i.bytes }, func(_ context.Context, in []item) ([]item, error) {
					calls.Add(1)
					time.Sleep(in[0].took)
					return slices.Clone(in), nil
				})
				var all sync.WaitGroup
				come := func(n int, i item) {
					for range n {
						all.Go(func() { _, _ = co.Do(t.Context(), i) })
					}
					synctest.Wait()
				}
				start := time.Now()
				come(1, item{short, 1})
				come(laneWorth, item{long, 1})
				time.Sleep(short / 2)
				come(c.come, item{short, c.bytes})
				time.Sleep(short / 2)
				synctest.Wait()
				if got := calls.Load(); got != c.calls {
					t.Errorf("%d calls, want %d", got, c.calls)
				}
				all.Wait()
				if took := time.Since(start); took != c.allEnds {
					t.Errorf("all took %v, want %v", took, c.allEnds)
				}
			})
		})
	}
}

// While one call hangs, those who come later share the other lane, each for as long
// as its own call takes.
func TestCoalescerCallThatHangsHoldsUpNobodyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		c := NewCoalescer(10, 2, nil, func(_ context.Context, in []int) ([]int, error) {
			if in[0] == 0 {
				<-hangs
			}
			time.Sleep(time.Millisecond)
			return slices.Clone(in), nil
		})
		hung := make(chan error, 1)
		go func() { _, err := c.Do(t.Context(), 0); hung <- err }()
		synctest.Wait()
		for i := 1; i <= 10; i++ {
			synctest.Wait() // the lane of the one before has closed
			start := time.Now()
			if out, err := c.Do(t.Context(), i); out != i || err != nil {
				t.Errorf("%d: %d, %v", i, out, err)
			}
			if took := time.Since(start); took > slowLane+time.Millisecond {
				t.Errorf("%d took %s", i, took)
			}
		}
		close(hangs)
		if err := <-hung; err != nil {
			t.Error(err)
		}
		c.Wait()
	})
}
