package redisengine

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultClocksDisagree has one master's clock an hour ahead, and one's an hour
// behind: nobody notices.
func TestFaultClocksDisagree(t *testing.T) {
	t.Parallel()
	cluster := newClustered(t, "shards=6",
		redistest.NodeOption(0, redistest.Clock("+1h")),
		redistest.NodeOption(1, redistest.Clock("-1h")))
	cluster.spread("q")
	c, e := cluster.client, cluster.engine

	const n = 60
	l := newLedger(t, "q")
	l.work(c, tarry.WorkerConfig{})
	half := time.Now().Add(30 * time.Minute)
	for i := range n {
		key := "half" + strconv.Itoa(i)
		if _, err := c.Push(t.Context(), "q", nil, tarry.At(half), tarry.Key(key)); err != nil {
			t.Fatal(err)
		}
		l.change(func() { l.entries[key] = &entry{in: 30 * time.Minute, due: half, pushed: true} })
		l.push(c, "hour"+strconv.Itoa(i), time.Hour)
		l.push(c, "soon"+strconv.Itoa(i), 2*time.Second)
	}
	l.rest(10 * time.Second)
	t.Logf("the latest was handled after %v", l.late)
	if l.late > 2*time.Second {
		t.Error("that is too late")
	}
	l.settled(c, 5*time.Second)
	l.once()

	// Leases last as long as they are to.
	l.push(c, "again", 0)
	for i := range n {
		push(t, e, plain("r", strconv.Itoa(i)))
	}
	for _, lease := range leaseAll(t, e, "r") {
		if left := time.Until(lease.Deadline); left < time.Hour-time.Minute || left > time.Hour+time.Minute {
			t.Errorf("a lease for an hour lasts %v", left)
		}
	}
}

// TestFaultClockStepsBack sets the server's clock back while a worker waits.
func TestFaultClockStepsBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Clock("+0"))
	c := openClient(t, s.URL())
	held := newLedger(t, "held")
	release := make(chan bool)
	held.during = func() { <-release }
	held.work(c, tarry.WorkerConfig{LeaseTTR: 2 * time.Second})
	unblock := sync.OnceFunc(func() { close(release) })
	t.Cleanup(unblock)
	held.push(c, "k", 0)
	l := newLedger(t, "q")
	l.work(c, tarry.WorkerConfig{})
	l.push(c, "first", 0)
	l.rest(10 * time.Second)
	held.await("the handler to start", 10*time.Second, func() bool { return held.entries["k"].running })
	l.push(c, "far", time.Minute)
	for i := range 20 {
		l.push(c, fmt.Sprint("near", i), time.Second)
	}
	counts(t, c, "q", 10*time.Second, 21, 0, 0)

	// What was to be due is so an hour and a second later.
	s.SetClock("-1h")
	pushed := time.Now()
	for i := range 20 {
		l.push(c, fmt.Sprint("later", i), time.Second)
	}
	l.await("what is due by the new clock", 10*time.Second, func() bool { return l.handled == 1+20 })
	t.Logf("it was handled %v late", time.Since(pushed)-time.Second)
	unblock()
	held.rest(10 * time.Second)
	counts(t, c, "held", 5*time.Second, 0, 0, 0) // it could be acked
	held.once()
	counts(t, c, "q", 0, 21, 0, 0)

	// And when the clock is right again that is overdue.
	s.SetClock("+0")
	t.Logf("the rest was handled %v after the clock was put right", l.await("the rest", Recheck+3*time.Second, func() bool {
		return l.handled == 1+20+20
	}))
	counts(t, c, "q", 5*time.Second, 1, 0, 0)
	l.once()
}

// TestFaultClockStepsForward sets the server's clock ahead while a worker waits that
// has no other cause to ask.
func TestFaultClockStepsForward(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Clock("+0"))
	c := openClient(t, s.URL(), "shards=1")
	l := newLedger(t, "q")
	l.work(c, tarry.WorkerConfig{})
	l.push(c, "far", 2*time.Hour)
	for i := range 20 {
		l.push(c, fmt.Sprint(i), 30*time.Minute)
	}
	l.push(c, "first", 0)
	l.rest(10 * time.Second)
	counts(t, c, "q", 10*time.Second, 21, 0, 0)

	l.change(func() {
		for _, e := range l.entries {
			e.due = e.due.Add(-time.Hour)
		}
	})
	s.SetClock("+1h")
	t.Logf("it was handled %v after the step", l.await("what is due by now", Recheck+3*time.Second, func() bool {
		return l.handled == 1+20
	}))
	counts(t, c, "q", 5*time.Second, 1, 0, 0)
	l.once()
}
