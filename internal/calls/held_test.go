package calls

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// What was settled is not held any more, what was extended is, and the rest is released.
func TestHeldLeases(t *testing.T) {
	t.Parallel()
	var h Held[string]
	now := time.Now()
	add := func(token string, ttr time.Duration) {
		h.Add(&engine.Lease{Token: token, Info: engine.Info{Deadline: now.Add(ttr)}}, "of "+token, now)
	}
	for _, token := range []string{"acked", "extended", "refused", "kept", "replaced", "not replaced"} {
		add(token, time.Second)
	}
	h.Settled([]engine.Settlement{{Token: "acked", Do: engine.Ack}, {Token: "extended", Do: engine.Extend}, {Token: "refused", Do: engine.Ack}, {Token: "unknown", Do: engine.Ack}},
		[]engine.Settled{{State: engine.Gone}, {State: engine.Leased, Until: now.Add(time.Hour)}, {Err: engine.ErrBusy}, {State: engine.Gone}})
	h.Replaced([]engine.Message{{Token: "replaced"}, {}, {Token: "not replaced"}}, []engine.PushResult{{}, {}, {Err: engine.ErrLeaseLost}})
	if of, ok := h.Get("kept"); of != "of kept" || !ok {
		t.Errorf("got %q, %v", of, ok)
	}
	if _, ok := h.Get("acked"); ok {
		t.Error("a settled lease is held")
	}
	var calls int
	var back []string
	h.GiveBack(func(_ context.Context, s []engine.Settlement) ([]engine.Settled, error) {
		calls++
		for _, one := range s {
			if back = append(back, one.Token); one.Do != engine.Release {
				t.Errorf("%+v", one)
			}
		}
		return nil, nil
	})
	slices.Sort(back)
	if want := []string{"extended", "kept", "not replaced", "refused"}; !slices.Equal(back, want) || calls != 1 {
		t.Errorf("%d calls release %v, want %v", calls, back, want)
	}
}

// Leases that nobody settles do not pile up: overdue ones go, extended ones stay.
func TestOverdueLeasesAreNotHeld(t *testing.T) {
	t.Parallel()
	var h Held[struct{}]
	now := time.Now()
	add := func(n int, deadline time.Time) {
		h.Add(&engine.Lease{Token: strconv.Itoa(n), Info: engine.Info{Deadline: deadline}}, struct{}{}, now)
	}
	for n := range heldLeast {
		add(n, now)
	}
	h.Settled([]engine.Settlement{{Token: "0", Do: engine.Extend}}, []engine.Settled{{State: engine.Leased, Until: now.Add(time.Hour)}})
	add(heldLeast, now.Add(time.Hour))
	if len(h.leases) != 2 {
		t.Errorf("%d leases are held, want the extended one and the last", len(h.leases))
	}
}
