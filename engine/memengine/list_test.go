package memengine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Pages of any range and size, in both directions, show what lies in it, in order.
func TestListRanges(t *testing.T) {
	e, c := newEngine(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	base := c.Now()
	var all []engine.PushResult
	for range 200 {
		all = append(all, push(t, e, msg("q", "", time.Hour+time.Duration(rng.IntN(300))*time.Second))...)
	}
	slices.SortStableFunc(all, func(a, b engine.PushResult) int { return a.Due.Compare(b.Due) })
	bound := func() time.Time {
		if rng.IntN(4) == 0 {
			return time.Time{}
		}
		return base.Add(time.Hour + time.Duration(rng.IntN(320)-10)*time.Second + time.Duration(rng.IntN(3)-1))
	}
	for range 200 {
		lq := engine.ListQuery{Queue: "q", State: engine.Scheduled, Limit: 1 + rng.IntN(50), From: bound(), To: bound(), Newest: rng.IntN(2) == 0}
		var want, got []engine.ID
		for _, r := range all {
			if !r.Due.Before(lq.From) && (lq.To.IsZero() || r.Due.Before(lq.To)) {
				want = append(want, r.ID)
			}
		}
		if lq.Newest {
			slices.Reverse(want)
		}
		for {
			page, err := e.List(t.Context(), lq)
			if err != nil || len(page.Messages) > lq.Limit {
				t.Fatal(err, len(page.Messages))
			}
			for _, i := range page.Messages {
				got = append(got, i.ID)
			}
			if lq.After = page.Next; lq.After == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v", lq, got, want)
		}
	}
}

// A ref may say in which state its message is to be.
func TestIfState(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("q", "held", 0))
	lease(t, e, "q", 1)
	push(t, e, msg("q", "later", time.Hour), msg("q", "now", 0))
	try := func(ref engine.Ref) (cancelled, moved error) {
		_, moved = e.Reschedule(t.Context(), ref, engine.When{})
		errs, err := e.Cancel(t.Context(), []engine.Ref{ref})
		if err != nil {
			t.Fatal(err)
		}
		return errs[0], moved
	}
	for key, is := range map[string]engine.State{"later": engine.Scheduled, "now": engine.Ready, "held": engine.Leased} {
		for other := engine.Scheduled; other <= engine.Dead; other++ {
			ref := engine.Ref{Queue: "q", Key: key, IfState: other}
			if cancelled, moved := try(ref); other != is && (!errors.Is(cancelled, engine.ErrStale) || !errors.Is(moved, engine.ErrStale)) {
				t.Errorf("%+v: %v, %v", ref, cancelled, moved)
			}
			if other == is && is != engine.Leased {
				break // it is cancelled, or was made ready
			}
		}
	}
	if cancelled, moved := try(engine.Ref{Queue: "q", Key: "held", IfState: engine.Leased}); !errors.Is(cancelled, engine.ErrLeased) || !errors.Is(moved, engine.ErrLeased) {
		t.Error(cancelled, moved)
	}
	if _, err := e.Claim(t.Context(), engine.Ref{Queue: "q", Key: "held", IfState: engine.Ready}, engine.Want{}); !errors.Is(err, engine.ErrLeased) {
		t.Error("a claim asks for no state:", err)
	}
}
