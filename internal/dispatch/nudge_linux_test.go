package dispatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestExactNapsEndInTime(t *testing.T) {
	n := ExactNap()
	defer n.Stop()
	// A scheduler that sleeps in whole milliseconds ends such naps 0.7 ms late. Where
	// others keep the machine from being in time, it is so for some of them.
	const d, late, batch = 1300 * time.Microsecond, 300 * time.Microsecond, 50
	for give := time.Now().Add(30 * time.Second); ; {
		exact := 0
		for range batch {
			until := time.Now().Add(d)
			if n.Sleep(nil, until) {
				continue
			}
			switch after := time.Since(until); {
			case after < 0:
				t.Fatalf("ended %s early", -after)
			case after < late:
				exact++
			}
		}
		if exact > batch/2 {
			return
		}
		if time.Now().After(give) {
			t.Skipf("others keep the machine from being in time: of the last %d naps %d ended within %s", batch, exact, late)
		}
	}
}

func TestANudgeComesWhenItWasLastArmedFor(t *testing.T) {
	n := ExactNap()
	defer n.Stop()
	for _, left := range []time.Duration{time.Millisecond, 40 * time.Millisecond, 10 * time.Millisecond} {
		until := n.begin(t, left)
		n.Sleep(woken, until) // woken early, it goes on to the same instant
		n.Sleep(woken, until)
		if n.come(t, 0) && time.Now().Before(until) {
			t.Fatalf("of a sleep of %s it came %s early", left, time.Until(until))
		}
		n.Sleep(woken, until)
		if !n.come(t, 10*time.Second) {
			t.Fatalf("it did not come for a sleep of %s", left)
		}
	}
}

// woken ends each sleep at once.
var woken = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// begin arms the nudge to come in d, and returns when that is. A sleep whose time has
// come before it begins arms nothing, so it may take another.
func (n *Nap) begin(t *testing.T, d time.Duration) time.Time {
	t.Helper()
	for range 10_000 {
		until := time.Now().Add(d)
		if n.Sleep(woken, until); n.nudgeAt.Equal(until) {
			return until
		}
	}
	t.Fatalf("no sleep of %s has begun in time", d)
	return time.Time{}
}

// come waits so long for the nudge to come, and reports whether it has.
func (n *Nap) come(t *testing.T, patience time.Duration) bool {
	t.Helper()
	for give := time.Now().Add(patience); ; {
		left := max(0, time.Until(give))
		k, err := unix.Poll([]unix.PollFd{{Fd: int32(n.nudge.fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err == unix.EINTR {
			continue // a signal of the runtime's
		}
		if err != nil {
			t.Fatal(err)
		}
		return k == 1
	}
}

func TestNapsGiveTheirDescriptorsBack(t *testing.T) {
	before := timers(t)
	for range 10 {
		n := ExactNap()
		n.begin(t, time.Second)
		if got := timers(t); got != before+1 {
			t.Fatalf("%d descriptors during a nap, %d before", got, before)
		}
		n.Stop()
		n.Stop()
	}
	n := ExactNap()
	n.Sleep(woken, time.Time{})
	n.Sleep(nil, time.Now().Add(-time.Second))
	if got := timers(t); got != before {
		t.Fatalf("%d descriptors after all naps and one that needs none, %d before", got, before)
	}
}

// timers counts this process's timerfds.
func timers(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) == 0 {
		t.Fatal("no /proc/self/fd", err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "timerfd") {
			n++
		}
	}
	return n
}

func TestNapsWithoutADescriptorEndAllTheSame(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	n := ExactNap()
	defer n.Stop()
	none := was
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(2 * time.Millisecond)
	step := n.Sleep(nil, until)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if step || time.Now().Before(until) || n.nudge.file != nil {
		t.Errorf("step %t, %s early, file %v", step, time.Until(until), n.nudge.file)
	}
	if n.begin(t, time.Second); n.nudge.file == nil {
		t.Error("no descriptor when there are some again")
	}
}

func TestExactNapsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := ExactNap()
		defer n.Stop()
		start := time.Now()
		if n.Sleep(nil, start.Add(time.Hour+time.Microsecond)) || time.Since(start) != time.Hour+time.Microsecond {
			t.Errorf("slept %s", time.Since(start))
		}
	})
}
