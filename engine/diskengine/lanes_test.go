package diskengine

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// A queue that is slow holds up its own pushes, and no others.
func TestQueueThatIsSlowHoldsUpNoPushesOfOthers(t *testing.T) {
	e, _ := openMem(t)
	c := tarry.New(e, nil)
	defer c.Close()
	if _, err := c.Push(t.Context(), "slow", nil); err != nil {
		t.Fatal(err)
	}
	q := e.queue("slow")
	q.mu.Lock()
	slow := make(chan error, 1)
	go func() { _, err := c.Push(t.Context(), "slow", nil); slow <- err }()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for range 10 {
		if _, err := c.Push(ctx, "quick", nil); err != nil {
			t.Errorf("beside a slow queue: %v", err)
			break
		}
	}
	q.mu.Unlock()
	if err := <-slow; err != nil {
		t.Error(err)
	}
}
