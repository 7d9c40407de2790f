package tarry_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// slowLeases takes some time for each lease, so that others come meanwhile.
type slowLeases struct{ *stage }

func (e *slowLeases) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	time.Sleep(3 * time.Millisecond)
	return e.stage.Lease(ctx, wants)
}

// TestCrowdGetsWhatIsDue: a call has room for some of the leases of a queue only. The others
// do not wait, but still get messages while there are more.
func TestCrowdGetsWhatIsDue(t *testing.T) {
	for name, most := range map[string]int{"of one message": 1, "of as many as a call brings": engine.MaxLease} {
		t.Run(name, func(t *testing.T) {
			bubbleOn(t, &slowLeases{newStage()}, func(t *testing.T, c *tarry.Client) {
				crowd := 40
				if most > 1 {
					crowd = 3
				}
				for i := range crowd * most {
					push(t, c, "q", strconv.Itoa(i))
				}
				var some sync.WaitGroup
				var none atomic.Int32
				for range crowd {
					some.Go(func() {
						got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: most})
						if err != nil {
							t.Error(err)
						}
						if len(got.Messages) == 0 {
							none.Add(1)
						}
					})
				}
				some.Wait()
				if none.Load() > 0 {
					q, err := c.Queue(t.Context(), "q")
					t.Errorf("%d of %d leases got nothing, though %d messages are ready, %v", none.Load(), crowd, q.Ready, err)
				}
			})
		})
	}
}
