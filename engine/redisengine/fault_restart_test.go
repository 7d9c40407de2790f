package redisengine

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultRestart kills a Redis that writes all down, under load, for longer than a
// call is patient.
func TestFaultRestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Args("--appendonly", "yes", "--appendfsync", "always"))
	c := openClient(t, s.URL())
	l := newLedger(t, "q")
	l.work(c, tarry.WorkerConfig{})
	stop := l.produce(c, 0, 50*time.Millisecond, 0, time.Hour, 2*time.Second)
	l.more(500, 20*time.Second)

	s.Kill()
	killed := time.Now()
	l.await("a push to fail", 20*time.Second, func() bool { return l.when.Sub(killed) > patience })
	fails(t, l.failure(), tarry.ErrUnavailable)
	s.Restart()
	t.Logf("%v after the restart both pushes and handlers had gone on", l.more(1, 10*time.Second))
	l.more(500, 20*time.Second)
	stop()
	t.Logf("%v later all that was due was handled", l.rest(10*time.Second))
	l.settled(c, 5*time.Second)
}

// TestFaultHang stops a Redis for longer than an answer is waited for. Its connections
// stay, and when it goes on it does what it was told before.
func TestFaultHang(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := openClient(t, s.URL())
	l := newLedger(t, "q")
	l.work(c, tarry.WorkerConfig{})
	stop := l.produce(c, 0, 50*time.Millisecond, time.Second, time.Hour)
	l.more(500, 20*time.Second)
	s.Pause()
	l.await("a push to fail", 20*time.Second, func() bool { return l.failed != nil })
	fails(t, l.failure(), tarry.ErrUnavailable)
	s.Resume()
	t.Logf("both pushes and handlers went on %v later", l.more(1, 10*time.Second))
	l.more(200, 20*time.Second)
	stop()
	t.Logf("all that was due was handled %v later", l.rest(10*time.Second))
	l.settled(c, 10*time.Second)
}

// TestFaultRestartForgets restarts a Redis that keeps nothing, as a failover may lose
// what was written last: then also who uses which queues has to be noted again.
func TestFaultRestartForgets(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	c := tarry.New(e, nil)
	t.Cleanup(func() { _ = c.Close() }) // it has not opened the engine
	l := newLedger(t, "q")
	l.work(c, tarry.WorkerConfig{})
	l.push(c, "before", 0)
	l.rest(10 * time.Second)

	s.Restart()
	l.push(c, "after", 0)
	l.rest(10 * time.Second)
	other := openClient(t, s.URL())
	n := 0
	succeeds(t, Recheck, func() error {
		n++
		l.push(c, strconv.Itoa(n), time.Hour)
		queues, _, err := other.Queues(t.Context(), "", 0)
		if err == nil && len(queues) != 1 {
			err = fmt.Errorf("of one queue in use %d are known", len(queues))
		}
		return err
	})
	l.settled(c, 5*time.Second)
}
