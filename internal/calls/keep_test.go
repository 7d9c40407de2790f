package calls

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Goroutines are used again, few are kept, none for long, and none after Close: the
// bubble waits for all to end.
func TestGoroutinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Pool
		crowd := func() int {
			var tasks sync.WaitGroup
			for range 100 {
				tasks.Go(func() {
					_, _, _ = Make(t.Context(), &c, 0, func(int, error) { t.Error("a call was left") }, func() (int, error) {
						time.Sleep(time.Millisecond)
						return 0, nil
					})
				})
			}
			tasks.Wait()
			synctest.Wait()
			return c.kept()
		}
		if n := crowd(); n != idleMost {
			t.Errorf("%d goroutines are kept, want %d", n, idleMost)
		}
		time.Sleep(2 * idleFor)
		synctest.Wait()
		if n := c.kept(); n != 0 {
			t.Errorf("%d goroutines are kept without work for long", n)
		}
		crowd()
		c.Close()
		if n := c.kept(); n != 0 {
			t.Errorf("%d goroutines are kept after Close", n)
		}
		if n := crowd(); n != 0 {
			t.Errorf("%d goroutines are kept by calls after Close", n)
		}
	})
}

func (c *Pool) kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle)
}
