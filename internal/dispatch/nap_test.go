package dispatch

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNapEndsAtItsTimeOrWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNap()
		defer n.Stop()
		wake := make(chan struct{}, 1)
		start := time.Now()
		if n.Sleep(wake, start.Add(90*time.Second+time.Millisecond)) || time.Since(start) != 90*time.Second+time.Millisecond {
			t.Errorf("slept %s", time.Since(start))
		}
		start = time.Now()
		if n.Sleep(wake, start.Add(-time.Second)) || time.Since(start) != 0 {
			t.Errorf("slept %s until a time in the past", time.Since(start))
		}
		for _, until := range []time.Time{{}, start.Add(time.Hour)} {
			start = time.Now()
			time.AfterFunc(3*time.Second, func() { wake <- struct{}{} })
			if n.Sleep(wake, until) || time.Since(start) != 3*time.Second {
				t.Errorf("slept %s, woken after 3s", time.Since(start))
			}
		}
	})
}

func TestNapSeesASteppedClock(t *testing.T) {
	now := time.Now()
	for off, want := range map[time.Duration]bool{
		0: false, time.Millisecond: false, -time.Millisecond: false,
		time.Second: true, -time.Second: true, 365 * 24 * time.Hour: true,
	} {
		// The wall clock of the later instant is moved, its monotonic one is not: as
		// if the start had been read from a clock that was off.
		start := now.Round(0).Add(-off)
		later := now.Add(time.Minute)
		if got := apart(start, later.Round(0), time.Minute); got != want {
			t.Errorf("stepped by %s: %t", off, got)
		}
	}
	if stepped(now, now.Add(time.Hour)) {
		t.Error("a clock that did not step seems to have")
	}
}
