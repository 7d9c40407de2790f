package timer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// playDelayQueue makes the calls that a tape says on a DelayQueue. Whenever all
// is quiet, either nothing is due or nobody waits.
func playDelayQueue(t *testing.T, tape []byte) {
	synctest.Test(t, func(t *testing.T) {
		next := func() int {
			if len(tape) == 0 {
				return 0
			}
			b := tape[0]
			tape = tape[1:]
			return int(b)
		}
		delay := func() time.Duration { return time.Duration(next()-16) << (next() % 30) }

		q := timer.NewDelayQueue[int]()
		type element struct {
			handle timer.Handle
			due    time.Time
			gone   bool
		}
		var mu sync.Mutex
		var elements []*element
		var line []*int // of those who wait, in turn
		least := func() (least time.Time, n int) {
			for _, e := range elements {
				if e.gone {
					continue
				}
				if n++; n == 1 || e.due.Before(least) {
					least = e.due
				}
			}
			return least, n
		}
		took := func(v int) {
			e, now := elements[v], time.Now()
			first, _ := least()
			switch {
			case e.gone:
				t.Errorf("took %d twice", v)
			case e.due.After(now):
				t.Errorf("took %d %v early", v, e.due.Sub(now))
			case e.due.After(first):
				t.Errorf("took %d, due %v after the least", v, e.due.Sub(first))
			}
			e.gone = true
		}
		ctx, cancel := context.WithCancel(t.Context())
		for len(tape) > 0 && !t.Failed() {
			op := next()
			mu.Lock()
			switch n := len(elements); {
			case op < 80:
				due := time.Now().Add(delay())
				elements = append(elements, &element{due: due})
				elements[n].handle = q.Put(due, n)
			case op < 150:
				within, taker := time.Duration(0), new(int)
				if op%2 == 0 {
					within = time.Duration(1+next()) << (next() % 30)
				}
				line = append(line, taker)
				mu.Unlock()
				go func() {
					ctx := ctx
					if within > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, within)
						defer cancel()
					}
					v, err := q.Take(ctx)
					mu.Lock()
					defer mu.Unlock()
					at := slices.Index(line, taker)
					if line = slices.Delete(line, at, at+1); err == nil {
						took(v)
					}
				}()
				synctest.Wait() // so that the line is known
				mu.Lock()
			case op < 200 && n > 0:
				at := n - 1 - next()*next()*n>>16
				e := elements[at]
				if op < 175 {
					if v, ok := q.Remove(e.handle); ok == e.gone || ok && v != at {
						t.Errorf("remove of %d: %d, %t", at, v, ok)
					}
					e.gone = true
				} else {
					due := time.Now().Add(delay())
					if ok := q.Reset(e.handle, due); ok == e.gone {
						t.Errorf("reset of %d: %t", at, ok)
					}
					e.due = due
				}
			case op < 210:
				if v, ok := q.Poll(); ok {
					took(v)
				}
			case op < 220:
				first, n := least()
				head, ok := q.Peek()
				if ok != (n > 0) || ok && !head.Due.Equal(first) {
					t.Errorf("the head is %v, %t, the least due %v", head, ok, first)
				}
				if due, ok := q.Due(head.Handle); ok != (n > 0) || ok && !due.Equal(first) {
					t.Errorf("the head is due %v, %t; want %v", due, ok, first)
				}
			default:
				d := delay()
				mu.Unlock()
				time.Sleep(d)
				mu.Lock()
			}
			mu.Unlock()
			synctest.Wait()
			mu.Lock()
			first, n := least()
			if q.Len() != n {
				t.Errorf("len %d, want %d", q.Len(), n)
			}
			if n > 0 && !first.After(time.Now()) && len(line) > 0 {
				t.Errorf("%d wait for what is due since %v", len(line), time.Since(first))
			}
			mu.Unlock()
		}
		cancel()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(line) > 0 {
			t.Errorf("%d wait with an ended context", len(line))
		}
	})
}

func TestDelayQueueAgainstModel(t *testing.T) { playTapes(t, 300, 300, playDelayQueue) }

func FuzzDelayQueue(f *testing.F) { fuzzTapes(f, playDelayQueue) }
