package redisengine

import (
	"net"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultDemoted: the name of a server leads to a new master, as that of a managed Redis
// does after a failover, while the old one becomes its replica and keeps its connections.
func TestFaultDemoted(t *testing.T) {
	t.Parallel()
	old, next := redistest.Start(t), redistest.Start(t)
	host, port, err := net.SplitHostPort(old.Addr())
	if err != nil {
		t.Fatal(err)
	}
	next.Do("REPLICAOF", host, port)
	p := redistest.StartProxy(t, old.Addr())
	c := openClient(t, p.URL())
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	l.Push(c, "before", 0)
	l.Rest(longWait)
	outage.Counts(t, c, "q", longWait, 0, 0, 0)
	catchUp(t, old, next)

	next.Do("REPLICAOF", "NO", "ONE")
	host, port, err = net.SplitHostPort(next.Addr())
	if err != nil {
		t.Fatal(err)
	}
	old.Do("REPLICAOF", host, port)
	p.Lead(next.Addr())
	l.Push(c, "after", 0)
	t.Logf("it was handled after %v", l.Rest(longWait))
	outage.Counts(t, c, "q", longWait, 0, 0, 0)
	l.Once()
}
