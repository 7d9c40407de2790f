package timer_test

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/timer"
)

func collect(core timer.Core[int], now time.Time) []int {
	var got []int
	for _, v := range core.Advance(now) {
		got = append(got, v)
	}
	return got
}

// The example of those who described the ring.
func TestRingOfAnHour(t *testing.T) {
	start := time.Unix(0, 0)
	r := timer.NewRing[int](0, 0, start)
	for range r.Advance(start.Add(time.Second)) {
	}
	if r.Index() != 1 {
		t.Fatalf("hand at %d, want 1", r.Index())
	}
	now := start.Add(time.Second)
	h := r.Schedule(now.Add(3610*time.Second), 1)
	if slot, cycle, ok := r.Where(h); slot != 11 || cycle != 1 || !ok {
		t.Errorf("slot %d, cycle %d, %t; want 11 and 1", slot, cycle, ok)
	}
	if got := collect(r, now.Add(3609*time.Second)); len(got) != 0 {
		t.Errorf("early: %v", got)
	}
	if _, cycle, _ := r.Where(h); cycle != 0 {
		t.Errorf("cycle %d after the first pass, want 0", cycle)
	}
	if got := collect(r, now.Add(3610*time.Second)); len(got) != 1 {
		t.Errorf("not fired: %v", got)
	}
}

// A whole number of turns must not take one more.
func TestRingWholeTurns(t *testing.T) {
	for turns := range 4 {
		start := time.Unix(1000, 0)
		r := timer.NewRing[int](60, time.Second, start)
		after := time.Duration(turns*60) * time.Second
		r.Schedule(start.Add(after), 1)
		for now := start; now.Before(start.Add(after)); now = now.Add(time.Second) {
			if got := collect(r, now); len(got) != 0 {
				t.Fatalf("%d turns: fired after %v", turns, now.Sub(start))
			}
		}
		if got := collect(r, start.Add(after)); len(got) != 1 {
			t.Errorf("%d turns: not fired after %v", turns, after)
		}
	}
}
