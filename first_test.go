package tarry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// A front finds a message by its id, claims it whatever its state, gives it another priority,
// and sees what comes first.
func TestPeekFindAndClaimInAState(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		ctx := t.Context()
		usual := push(t, c, "a", "x")
		later := push(t, c, "b", "y", tarry.In(time.Hour))
		queues, err := c.Find(ctx, []tarry.ID{later.ID, 99, usual.ID, 0})
		if want := []string{"b", "", "a", ""}; err != nil || !slices.Equal(queues, want) {
			t.Fatalf("found in %q: %v", queues, err)
		}
		ref := tarry.ByID(later.ID).Of("b")
		ref.IfState = tarry.Scheduled
		l, err := c.Claim(ctx, ref, tarry.LeaseOptions{})
		if err != nil || l.ID != later.ID {
			t.Fatalf("claimed %+v: %v", l, err)
		}
		if _, err := c.Claim(ctx, ref, tarry.LeaseOptions{}); !errors.Is(err, tarry.ErrStale) {
			t.Errorf("claimed again: %v", err)
		}
		settled, err := c.Settle(ctx, []tarry.Settlement{{Token: l.Token, Do: engine.Release, Priority: new(uint32(3))}})
		if err != nil || settled[0].Err != nil {
			t.Fatalf("%+v, %v", settled, err)
		}
		first, err := c.Peek(ctx, []string{"none", "b", "a"})
		if err != nil || len(first) != 3 || first[0].ID != 0 || first[1].ID != later.ID || first[1].Priority != 3 || first[2].ID != usual.ID {
			t.Errorf("first are %+v: %v", first, err)
		}
	})
}

func TestPeekAndFindRefuse(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		peek := func(ctx context.Context, queues ...string) error { _, err := c.Peek(ctx, queues); return err }
		find := func(ctx context.Context, n int) error { _, err := c.Find(ctx, make([]tarry.ID, n)); return err }
		over, end := context.WithCancel(t.Context())
		end()
		for name, x := range map[string]struct{ err, is error }{
			"a queue without a name":   {peek(t.Context(), "a", ""), tarry.ErrInvalid},
			"too many queues":          {peek(t.Context(), slices.Repeat([]string{"a"}, tarry.MaxBatch+1)...), tarry.ErrTooLarge},
			"too many ids":             {find(t.Context(), tarry.MaxBatch+1), tarry.ErrTooLarge},
			"a peek of who has left":   {peek(over, "a"), context.Canceled},
			"a search of who has left": {find(over, 1), context.Canceled},
		} {
			if !errors.Is(x.err, x.is) {
				t.Errorf("%s: %v", name, x.err)
			}
		}
	})
}
