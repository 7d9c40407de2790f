package diskengine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// Queues of large messages, which together have far more than one answer holds.
const (
	largeQueues = 24
	largeEach   = 2
	largeBody   = 1 << 20
)

// pushLargeQueues pushes them, due now, to a store with the least memory.
func pushLargeQueues(t *testing.T) *diskengine.Engine {
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MemoryBytes: diskengine.LeastMemory, MinFreeBytes: -1}, diskengine.Tune{}}
	e := p.open(t)
	for i := range largeQueues {
		for k := range largeEach {
			m := message(fmt.Sprint("q", i), fmt.Sprint(k), 0)
			m.Body = make([]byte, largeBody)
			must(t, pushAll(t, e, m))
		}
	}
	return e
}

// TestLeaseOfManyQueuesIsBounded leases from all of them in one call after the other, of one caller and of some
// that take turns, while those that were served first have more again and again: no answer holds much more than
// one of a queue may, the rest is said to be there, and nobody is passed over for long.
func TestLeaseOfManyQueuesIsBounded(t *testing.T) {
	for _, callers := range []int{1, 2} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			e := pushLargeQueues(t)
			wants := make([][]engine.Want, callers)
			for i := range largeQueues {
				wants[i%callers] = append(wants[i%callers], engine.Want{Queue: fmt.Sprint("q", i), Max: 10, TTR: time.Hour})
			}
			const most = engine.AnswerBytes/largeBody + 1
			got := make(map[string]int)
			for calls := 0; len(got) < largeQueues; calls++ {
				if calls == 2*largeQueues*largeEach/most {
					t.Fatalf("after %d calls some have come to nothing: %v", calls, got)
				}
				g, err := e.Lease(t.Context(), wants[calls%callers])
				must(t, err)
				n := 0
				for i, q := range g.Queues {
					must(t, q.Err)
					queue := wants[calls%callers][i].Queue
					if n += len(q.Messages); len(q.Messages) > 0 {
						got[queue] += len(q.Messages)
						m := message(queue, "", 0)
						m.Body = make([]byte, largeBody)
						must(t, pushAll(t, e, m))
					} else if got[queue] < largeEach && !q.More {
						t.Errorf("call %d: of %s %d were leased, and it is not said that there is more", calls, queue, got[queue])
					}
				}
				if n == 0 || n > most {
					t.Errorf("call %d: %d messages of 1 MiB are leased, at least 1 and at most %d should be", calls, n, most)
				}
			}
			must(t, e.Close())
		})
	}
}

// TestWorkerGoesOnWhereAnAnswerWasFull has a worker handle all of them, in a bubble: it waits for no time to
// pass, though an answer holds few of them.
func TestWorkerGoesOnWhereAnAnswerWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := pushLargeQueues(t)
		c := tarry.New(e, &tarry.Config{Logger: quiet})
		const all = largeQueues * largeEach
		var handled atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: all})
		for i := range largeQueues {
			tarry.Handle(w, tarry.NewTopic[[]byte](fmt.Sprint("q", i)), func(context.Context, *tarry.Message[[]byte]) error {
				if handled.Add(1) == all {
					stop()
				}
				return nil
			})
		}
		begun := time.Now()
		must(t, w.Run(ctx))
		if took := time.Since(begun); handled.Load() != all || took > 0 {
			t.Errorf("%d of %d were handled in %v", handled.Load(), all, took)
		}
		must(t, c.Close())
		must(t, e.Close())
	})
}
