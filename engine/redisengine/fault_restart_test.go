package redisengine

import (
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
