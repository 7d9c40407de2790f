package rabbitengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Workers of two processes handle each message once, and again where that fails.
func TestWorkers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		n := 600
		if cfg.Queues == Classic {
			n /= 4
		}
		topic := tarry.NewTopic[int]("work", tarry.Backoff(30*time.Millisecond), tarry.MaxAttempts(2))
		var mu sync.Mutex
		began, left, over := make(map[int]int), n, make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var workers sync.WaitGroup
		defer workers.Wait()
		var clients []*tarry.Client
		for range 2 {
			c := tarry.New(opened(t, url, cfg), nil)
			defer c.Close()
			clients = append(clients, c)
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 8})
			tarry.Handle(w, topic, func(_ context.Context, m *tarry.Message[int]) error {
				if time.Now().Before(m.Due) {
					t.Errorf("%d is handled at %s, due %s", m.Body, time.Now(), m.Due)
				}
				mu.Lock()
				defer mu.Unlock()
				began[m.Body]++
				if int(m.Attempt) != began[m.Body] {
					t.Errorf("%d: attempt %d, begun %d times", m.Body, m.Attempt, began[m.Body])
				}
				fails := m.Body%5 == 0 && m.Attempt == 1 || m.Body%50 == 0
				if !fails || m.LastAttempt() {
					if left--; left == 0 {
						close(over)
					}
				}
				if fails {
					return errors.New("no luck")
				}
				return nil
			})
			workers.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		for from := range n / 50 {
			var drafts []tarry.Draft
			for i := range 50 {
				d, err := topic.Draft(from*50+i+1, tarry.In(rand.N(time.Second)))
				ok(t, err)
				drafts = append(drafts, d)
			}
			pushed, err := clients[0].PushMany(t.Context(), drafts)
			ok(t, err)
			for _, p := range pushed {
				ok(t, p.Err)
			}
		}
		select {
		case <-over:
		case <-patience(t).Done():
			mu.Lock()
			t.Fatalf("%d are not done", left)
		}
		stop()
		workers.Wait()
		dead := 0
		for _, err := range topic.List(t.Context(), clients[0], tarry.Dead) {
			ok(t, err)
			dead++
		}
		if dead != n/50 {
			t.Errorf("%d are dead, want %d", dead, n/50)
		}
		for i := 1; i <= n; i++ {
			if want := 1 + btoi(i%5 == 0); began[i] != want {
				t.Errorf("%d was begun %d times, want %d", i, began[i], want)
			}
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
