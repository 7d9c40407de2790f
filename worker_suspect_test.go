package tarry_test

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// TestSuspectWaitsForResults: a message that has lapsed twice may kill its process, so it is
// begun once the results before it are confirmed, and not while the engine has one of them.
func TestSuspectWaitsForResults(t *testing.T) {
	s := newStage()
	confirm := make(chan struct{})
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Ack {
			<-confirm
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		confirm = make(chan struct{})
		push(t, c, "q", "suspect")
		lease := func() {
			got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, LeaseOptions: tarry.LeaseOptions{TTR: time.Second}})
			if err != nil || len(got.Messages) != 1 {
				t.Fatal(got, err)
			}
		}
		lease()
		pass(time.Minute)
		lease() // lapses for the second time while the worker waits for its first result
		var begun list[string]
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			begun.add(m.Body)
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "innocent")
		pass(5 * time.Second)
		if got := begun.all(); len(got) != 1 || got[0] != "innocent" {
			t.Errorf("begun before the first result is confirmed: %q", got)
		}
		close(confirm)
		pass(time.Second)
		if got := begun.all(); len(got) != 2 || got[1] != "suspect" {
			t.Errorf("begun: %q", got)
		}
		stop()
	})
}
