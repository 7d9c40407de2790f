package redisengine

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultClocksDisagree has one master's clock two seconds ahead and another's two seconds
// behind. Each shard uses its own server's clock: relative delays are exact, and absolute
// due times come that much early or late.
func TestFaultClocksDisagree(t *testing.T) {
	t.Parallel()
	const off = 2 * time.Second
	cluster := newClustered(t, "shards=6",
		redistest.NodeOption(0, redistest.Clock("+2s")),
		redistest.NodeOption(1, redistest.Clock("-2s")))
	cluster.spread("q")
	c, e := cluster.client, cluster.engine

	const n = 60
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	at := time.Now().Add(3 * off)
	for i := range n {
		l.Push(c, "hour"+strconv.Itoa(i), time.Hour)
		l.Push(c, "soon"+strconv.Itoa(i), off)
		key := "at" + strconv.Itoa(i)
		l.Change(func() { l.Entries[key] = &outage.Entry{Pushed: true, Due: at.Add(-off)} })
		if _, err := c.Push(t.Context(), "q", nil, tarry.At(at), tarry.Key(key)); err != nil {
			t.Fatal(err)
		}
	}
	l.Await("what is due", longWait, func() bool { return l.Handled == 2*n })
	l.Settled(c, longWait)
	l.Once()

	// Leases last as long as they are to.
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
	held := outage.NewLedger(t, "held")
	release := make(chan bool)
	held.During = func() { <-release }
	held.Work(c, tarry.WorkerConfig{LeaseTTR: 10 * time.Second})
	unblock := sync.OnceFunc(func() { close(release) })
	t.Cleanup(unblock)
	held.Push(c, "k", 0)
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "first", 0)
	l.Rest(longWait)
	held.Await("the handler to start", longWait, func() bool { return held.Entries["k"].Running })
	l.Push(c, "far", 2*time.Hour)
	for i := range 20 {
		l.Push(c, fmt.Sprint("near", i), time.Second)
	}
	outage.Counts(t, c, "q", longWait, 21, 0, 0)

	// What was to be due is so an hour and a second later.
	s.SetClock("-1h")
	pushed := time.Now()
	for i := range 20 {
		l.Push(c, fmt.Sprint("later", i), time.Second)
	}
	l.Await("what is due by the new clock", longWait, func() bool { return l.Handled == 1+20 })
	t.Logf("it was handled %v late", time.Since(pushed)-time.Second)
	eventually(t, "the lease to be renewed by the new clock", func() bool {
		i, err := c.Get(t.Context(), tarry.ByKey("k").Of("held"))
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(i.Deadline) < -time.Minute
	})
	unblock()
	held.Rest(longWait)
	outage.Counts(t, c, "held", longWait, 0, 0, 0) // it could be acked
	held.Once()
	outage.Counts(t, c, "q", longWait, 21, 0, 0)

	// And when the clock is right again that is overdue.
	s.SetClock("+0")
	t.Logf("the rest was handled %v after the clock was put right", l.Await("the rest", longWait, func() bool {
		return l.Handled == 1+20+20
	}))
	outage.Counts(t, c, "q", longWait, 1, 0, 0)
	l.Once()
}

// TestFaultClockStepsForward sets the server's clock ahead while a worker waits that
// has no other cause to ask.
func TestFaultClockStepsForward(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Clock("+0"))
	c := openClient(t, s.URL(), "shards=1")
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "far", 2*time.Hour)
	for i := range 20 {
		l.Push(c, fmt.Sprint(i), 30*time.Minute)
	}
	l.Push(c, "first", 0)
	l.Rest(longWait)
	outage.Counts(t, c, "q", longWait, 21, 0, 0)

	l.Change(func() {
		for _, e := range l.Entries {
			e.Due = e.Due.Add(-time.Hour)
		}
	})
	s.SetClock("+1h")
	t.Logf("it was handled %v after the step", l.Await("what is due by now", longWait, func() bool {
		return l.Handled == 1+20
	}))
	outage.Counts(t, c, "q", longWait, 1, 0, 0)
	l.Once()
}
