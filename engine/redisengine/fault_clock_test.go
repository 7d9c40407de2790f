package redisengine

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/ledger"
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
	l := ledger.New(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	half := time.Now().Add(30 * time.Minute)
	for i := range n {
		key := "half" + strconv.Itoa(i)
		if _, err := c.Push(t.Context(), "q", nil, tarry.At(half), tarry.Key(key)); err != nil {
			t.Fatal(err)
		}
		l.Change(func() { l.Entries[key] = &ledger.Entry{In: 30 * time.Minute, Due: half, Pushed: true} })
		l.Push(c, "hour"+strconv.Itoa(i), time.Hour)
		l.Push(c, "soon"+strconv.Itoa(i), 2*time.Second)
	}
	l.Rest(longWait)
	t.Logf("the latest was handled after %v", l.Late)
	if l.Late > 2*time.Second {
		t.Error("that is too late")
	}
	l.Settled(c, longWait)
	l.Once()

	// Leases last as long as they are to.
	l.Push(c, "again", 0)
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
	held := ledger.New(t, "held")
	release := make(chan bool)
	held.During = func() { <-release }
	held.Work(c, tarry.WorkerConfig{LeaseTTR: 2 * time.Second})
	unblock := sync.OnceFunc(func() { close(release) })
	t.Cleanup(unblock)
	held.Push(c, "k", 0)
	l := ledger.New(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "first", 0)
	l.Rest(longWait)
	held.Await("the handler to start", 10*time.Second, func() bool { return held.Entries["k"].Running })
	l.Push(c, "far", time.Minute)
	for i := range 20 {
		l.Push(c, fmt.Sprint("near", i), time.Second)
	}
	ledger.Counts(t, c, "q", longWait, 21, 0, 0)

	// What was to be due is so an hour and a second later.
	s.SetClock("-1h")
	pushed := time.Now()
	for i := range 20 {
		l.Push(c, fmt.Sprint("later", i), time.Second)
	}
	l.Await("what is due by the new clock", 10*time.Second, func() bool { return l.Handled == 1+20 })
	t.Logf("it was handled %v late", time.Since(pushed)-time.Second)
	unblock()
	held.Rest(10 * time.Second)
	ledger.Counts(t, c, "held", longWait, 0, 0, 0) // it could be acked
	held.Once()
	ledger.Counts(t, c, "q", longWait, 21, 0, 0)

	// And when the clock is right again that is overdue.
	s.SetClock("+0")
	t.Logf("the rest was handled %v after the clock was put right", l.Await("the rest", Recheck+3*time.Second, func() bool {
		return l.Handled == 1+20+20
	}))
	ledger.Counts(t, c, "q", longWait, 1, 0, 0)
	l.Once()
}

// TestFaultClockStepsForward sets the server's clock ahead while a worker waits that
// has no other cause to ask.
func TestFaultClockStepsForward(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Clock("+0"))
	c := openClient(t, s.URL(), "shards=1")
	l := ledger.New(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "far", 2*time.Hour)
	for i := range 20 {
		l.Push(c, fmt.Sprint(i), 30*time.Minute)
	}
	l.Push(c, "first", 0)
	l.Rest(longWait)
	ledger.Counts(t, c, "q", longWait, 21, 0, 0)

	l.Change(func() {
		for _, e := range l.Entries {
			e.Due = e.Due.Add(-time.Hour)
		}
	})
	s.SetClock("+1h")
	t.Logf("it was handled %v after the step", l.Await("what is due by now", Recheck+3*time.Second, func() bool {
		return l.Handled == 1+20
	}))
	ledger.Counts(t, c, "q", longWait, 1, 0, 0)
	l.Once()
}
