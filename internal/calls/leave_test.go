package calls

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errCall = errors.New("what the call says")

func unexpected(t *testing.T) func(int, error) {
	return func(out int, err error) { t.Errorf("an answer that was had came late: %d, %v", out, err) }
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Leaver
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			for range 3 {
				out, left, err := Make(ctx, &c, 0, unexpected(t), func() (int, error) { return 7, errCall })
				if out != 7 || left || err != errCall {
					t.Errorf("got %d, %t, %v", out, left, err)
				}
			}
		}
	})
}

// A call that hangs is left when its context ends, or so much later as it was given,
// and its answer is told late, once.
func TestLeft(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var c Leaver
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			answer, late := make(chan struct{}), 0
			start := time.Now()
			out, left, err := Make(ctx, &c, patience, func(out int, err error) {
				if late++; out != 7 || err != errCall || c.Left() != 1 {
					t.Errorf("late: %d, %v; %d left", out, err, c.Left())
				}
			}, func() (int, error) { <-answer; return 7, errCall })
			if out != 0 || !left || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("left with %d, %t, %v", out, left, err)
			}
			if took := time.Since(start); took != time.Second+patience {
				t.Errorf("left after %s", took)
			}
			if c.Left() != 1 {
				t.Errorf("%d calls are left", c.Left())
			}
			close(answer)
			synctest.Wait()
			if c.Left() != 0 || late != 1 {
				t.Errorf("%d calls are left; told %d times", c.Left(), late)
			}
		})
	}
}

// What comes within the patience is the answer.
func TestLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Leaver
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, left, err := Make(ctx, &c, time.Minute, unexpected(t), func() (int, error) {
			time.Sleep(time.Minute)
			return 7, nil
		})
		if out != 7 || left || err != nil {
			t.Errorf("got %d, %t, %v", out, left, err)
		}
	})
}

// Whether the answer or the end of the context comes first: either the caller has
// the answer or late does.
func TestOneOfBothHasTheAnswer(t *testing.T) {
	var c Leaver
	var tasks sync.WaitGroup
	var mu sync.Mutex
	had, told := 0, 0
	const calls = 2000
	for i := range calls {
		tasks.Add(1)
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		out, left, _ := Make(ctx, &c, 0, func(int, error) {
			mu.Lock()
			defer mu.Unlock()
			told++
			tasks.Done()
		}, func() (int, error) {
			for range i % 8 {
				runtime.Gosched()
			}
			return 7, nil
		})
		if left != (out == 0) {
			t.Fatalf("left %t with %d", left, out)
		}
		if !left {
			had++
			tasks.Done()
		}
	}
	tasks.Wait()
	if had+told != calls {
		t.Errorf("%d had an answer and %d were told it late, of %d", had, told, calls)
	}
	for c.Left() != 0 { // the last ones are about to say so
		runtime.Gosched()
	}
}

func BenchmarkMake(b *testing.B) {
	var c Leaver
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	late := func(int, error) {}
	for b.Loop() {
		_, _, _ = Make(ctx, &c, 0, late, func() (int, error) { return 1, nil })
	}
}
