package redisengine

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultRestart kills a Redis that writes all down, under load, for longer than a
// call is patient.
func TestFaultRestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Args("--appendonly", "yes", "--appendfsync", "always"))
	c := openClient(t, s.URL())
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	stop := l.Produce(c, 0, 50*time.Millisecond, 0, time.Hour, 2*time.Second)
	l.More(500, longWait)

	s.Kill()
	killed := time.Now()
	l.Await("a push to fail", longWait, func() bool { return l.When.Sub(killed) > patience })
	fails(t, l.Failure(), tarry.ErrUnavailable)
	s.Restart()
	t.Logf("%v after the restart both pushes and handlers had gone on", l.More(1, longWait))
	l.More(500, longWait)
	stop()
	t.Logf("%v later all that was due was handled", l.Rest(longWait))
	l.Settled(c, longWait)
}

// TestFaultHang stops a Redis for longer than an answer may take. Its connections stay open,
// and it executes the pending commands when it continues.
func TestFaultHang(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := openClient(t, s.URL())
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	stop := l.Produce(c, 0, 50*time.Millisecond, time.Second, time.Hour)
	l.More(500, longWait)
	s.Pause()
	l.Await("a push to fail", longWait, func() bool { return l.Failed != nil })
	fails(t, l.Failure(), tarry.ErrUnavailable)
	s.Resume()
	t.Logf("both pushes and handlers went on %v later", l.More(1, longWait))
	l.More(200, longWait)
	stop()
	t.Logf("all that was due was handled %v later", l.Rest(longWait))
	l.Settled(c, longWait)
}

// TestFaultRestartForgets restarts a Redis without persistence, as a failover may lose
// recent writes. Queues must be registered again, too.
func TestFaultRestartForgets(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	c := tarry.New(e, nil)
	t.Cleanup(func() { _ = c.Close() }) // it has not opened the engine
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "before", 0)
	l.Rest(longWait)

	s.Restart()
	l.Push(c, "after", 0)
	l.Rest(longWait)
	other := openClient(t, s.URL())
	n := 0
	outage.Succeeds(t, longWait, func() error {
		n++
		l.Push(c, strconv.Itoa(n), time.Hour)
		queues, _, err := other.Queues(t.Context(), "", 0)
		if err == nil && len(queues) != 1 {
			err = fmt.Errorf("of one queue in use %d are known", len(queues))
		}
		return err
	})
	l.Settled(c, longWait)
}
