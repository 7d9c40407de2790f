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

// Once the clock has been far ahead, all new entries are behind the hand.
func TestRingAfterAFalseJump(t *testing.T) {
	r := timer.NewRing[int](60, time.Second, epoch)
	for range r.Advance(epoch.AddDate(1, 0, 0)) {
	}
	const n = 20_000
	now, latest := epoch, time.Duration(0)
	one := func() {
		now = now.Add(time.Millisecond)
		r.Schedule(now.Add(time.Hour-latest), 0)
		latest = (latest + 7*time.Minute) % time.Hour
		r.Next()
		if _, ok := r.Poll(now); ok {
			t.Error("early")
		}
	}
	// quickest is what one more costs where nothing comes in between.
	quickest := func() time.Duration {
		least := time.Hour
		for range 500 {
			start := time.Now()
			one()
			least = min(least, time.Since(start))
		}
		return max(least, 100*time.Nanosecond)
	}
	few := quickest()
	for r.Len() < n {
		r.Schedule(now.Add(time.Hour-latest), 0)
		latest = (latest + 7*time.Minute) % time.Hour
	}
	if many := quickest(); many > 30*few { // a look at each would be 40 times as much
		t.Errorf("one more takes %v with few and %v with many", few, many)
	}
	if next, ok := r.Next(); !ok || next.After(epoch.Add(time.Hour)) {
		t.Errorf("next %v, %t", next, ok)
	}
	fired := 0
	for now := epoch; r.Len() > 0; now = now.Add(time.Minute) {
		for due := range r.Advance(now) {
			if fired++; now.Sub(due) > 61*time.Second || due.After(now) {
				t.Fatalf("fired %v late", now.Sub(due))
			}
		}
	}
	if fired < n {
		t.Errorf("fired %d of %d", fired, n)
	}
}

// An instant long ago moves no hand.
func TestRingAtTheZeroTime(t *testing.T) {
	for _, tick := range []time.Duration{time.Second, 7} {
		r := timer.NewRing[int](60, tick, epoch)
		for range r.Advance(time.Time{}) {
		}
		h := r.Schedule(epoch.Add(3*tick), 1)
		if _, cycle, ok := r.Where(h); cycle != 0 || !ok {
			t.Errorf("tick %v: cycle %d, %t", tick, cycle, ok)
		}
	}
}
