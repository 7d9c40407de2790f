package outage

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Killed kills or stops a server while two clients work, and one of them pushes and cancels.
// It restarts the server each time.
func Killed(t *testing.T, s Server) {
	url := s.Database()
	l := NewLedger(t, queue)
	l.Failing = unavailable(t)
	c := Open(t, url)
	l.Work(c, tarry.WorkerConfig{LeaseTTR: leaseTTR})
	l.Work(Open(t, url), tarry.WorkerConfig{LeaseTTR: leaseTTR})
	stop := l.ProduceAndCancel(c, 0, 50*time.Millisecond, time.Second, time.Hour)
	for _, end := range []func(){s.Kill, s.Stop, s.Kill} {
		l.More(100, patience)
		killed := time.Now()
		end()
		l.Await("a call to fail", patience, func() bool { return l.When.After(killed) })
		s.Restart()
		t.Logf("all went on after %v", l.More(1, patience))
	}
	l.More(100, patience)
	stop()
	t.Logf("the rest was handled after %v", l.Rest(patience))
	l.Settled(c, patience)
}
