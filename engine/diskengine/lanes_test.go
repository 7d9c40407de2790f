package diskengine

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// heard tells of each push of a queue before it reaches the engine.
type heard struct {
	*Engine
	queue string
	came  chan struct{}
}

func (h heard) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if msgs[0].Queue == h.queue {
		h.came <- struct{}{}
	}
	return h.Engine.Push(ctx, msgs)
}

// A queue that is slow holds up its own pushes, and none of others that come later.
func TestQueueThatIsSlowHoldsUpNoPushesOfOthers(t *testing.T) {
	e, _ := openMem(t)
	h := heard{e, "slow", make(chan struct{}, 1)}
	c := tarry.New(h, nil)
	defer c.Close()
	push := func(queue string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, err := c.Push(ctx, queue, nil)
		return err
	}
	if err := push("slow"); err != nil {
		t.Fatal(err)
	}
	<-h.came
	q := e.queue("slow")
	q.mu.Lock()
	slow := make(chan error, 1)
	go func() { _, err := c.Push(t.Context(), "slow", nil); slow <- err }()
	<-h.came
	for range 10 {
		if err := push("quick"); err != nil {
			t.Errorf("beside a slow queue: %v", err)
			break
		}
	}
	q.mu.Unlock()
	if err := <-slow; err != nil {
		t.Error(err)
	}
}
