package redisengine

import (
	"net"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestReplicas: with replicas=1 a push that was answered is on the replica, and one that
// did not get there is not answered for good.
func TestReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Start(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	follow := func() { replica.Do("REPLICAOF", host, port) }
	follow()
	eventually(t, "the replica", func() bool { return fact(t, master, "replication", "connected_slaves") == 1 })
	suite(t, master.URL()+"?replicas=1", enginetest.NewClock(), 1, callParts...)

	e, alone := openPatient(t, master.URL(), "replicas=1"), openStore(t, master.URL())
	for range 20 {
		push(t, e, plain("q", ""))
		if on, m := replica.Do("ZCARD", e.queue("q").shards[0].keys[0]), master.Do("ZCARD", e.queue("q").shards[0].keys[0]); on.String() != m.String() {
			t.Fatalf("the replica has %v, the master %v", on, m)
		}
	}
	replica.Do("REPLICAOF", "NO", "ONE")
	eventually(t, "the replica to go", func() bool { return fact(t, master, "replication", "connected_slaves") == 0 })
	r, err := openStore(t, master.URL(), "replicas=1").Push(t.Context(), []engine.Message{plain("p", "k")})
	if err != nil {
		t.Fatal(err)
	}
	fails(t, r[0].Err, engine.ErrUnavailable, "0 of 1", "was carried out", "replicas")
	if l := lease1(t, alone, "p"); l.Key != "k" || l.Attempt != 1 {
		t.Errorf("%+v", l)
	}

	ended := make(chan engine.PushResult, 1)
	go func() {
		r, _ := e.Push(t.Context(), []engine.Message{plain("r", "k")})
		ended <- r[0]
	}()
	follow() // and it comes back while the push is tried
	select {
	case r := <-ended:
		if r.Err != nil || r.Outcome != engine.Created {
			t.Errorf("%+v", r)
		}
	case <-time.After(2 * longWait):
		t.Error("the push does not end")
	}
	if got := leaseAll(t, alone, "r"); len(got) != 1 {
		t.Errorf("leased %+v", got)
	}
}
