package redisengine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// leaseTime is short where a failover may take an ack back, which then nobody repeats.
const leaseTime = 3 * time.Second

// clustered is a cluster and a client of it.
type clustered struct {
	*redistest.Cluster
	t      *testing.T
	engine *Engine
	client *tarry.Client
}

func newClustered(t *testing.T, shards string, opts ...redistest.Option) *clustered {
	t.Helper()
	// A node that is down shall not stop the others.
	opts = append(opts, redistest.Args("--cluster-require-full-coverage", "no"))
	c := &clustered{Cluster: redistest.StartCluster(t, opts...), t: t}
	c.engine = openStore(t, c.URL(), shards)
	c.client = tarry.New(c.engine, nil)
	t.Cleanup(func() { _ = c.client.Close() }) // what fails is the engine's
	return c
}

// slot is the hash slot of a shard.
func (c *clustered) slot(s *shard) int {
	c.t.Helper()
	m := c.Nodes[len(c.Nodes)-1].Do("CLUSTER", "KEYSLOT", s.keys[metaKey])
	slot, err := m.AsInt64()
	if err != nil {
		c.t.Fatal(err)
	}
	return int(slot)
}

// spread returns the master of each shard of a queue, and checks that all three have some.
func (c *clustered) spread(queue string) []*redistest.Server {
	c.t.Helper()
	var all []*redistest.Server
	on := make(map[*redistest.Server]bool)
	for _, s := range c.engine.queue(queue).shards {
		all = append(all, c.Owner(c.slot(s)))
		on[all[len(all)-1]] = true
	}
	if len(on) != 3 {
		c.t.Fatalf("the shards of %s are on %d masters", queue, len(on))
	}
	return all
}

// TestFaultSentinelFailover kills the master under load, once the replicas have all
// that was answered.
func TestFaultSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	c := openClient(t, s.URL())
	l := outage.NewLedger(t, "q")
	l.Forgetful = true
	l.Work(c, tarry.WorkerConfig{LeaseTTR: leaseTime})
	stop := l.Produce(c, 0, 3*time.Second, 6*time.Second, time.Hour)
	l.More(500, longWait)
	stop()
	master := s.Master()
	catchUp(t, master, s.Nodes[1:]...)

	killed := time.Now()
	master.Kill()
	stop = l.Produce(c, 0, 100*time.Millisecond, time.Hour)
	s.NewMaster(master)
	t.Logf("there was a new master %v after the death of the old one", time.Since(killed))
	t.Logf("both pushes and handlers went on %v later", l.More(1, longWait))
	l.More(500, longWait)
	stop()
	t.Logf("all that was due was handled %v later", l.Rest(longWait))
	l.Settled(c, longWait)
}

// TestFaultClusterFailover kills one of three masters under load, once its replica has
// all that was answered. The others go on all the while.
func TestFaultClusterFailover(t *testing.T) {
	t.Parallel()
	if meanwhile := clusterFailover(t, (*redistest.Server).Kill); meanwhile == 0 {
		t.Error("one node stops all")
	}
}

// TestFaultClusterNodeHangs has a master not die, but answer no more: its connections
// stay as they are.
func TestFaultClusterNodeHangs(t *testing.T) {
	t.Parallel()
	clusterFailover(t, (*redistest.Server).Pause)
}

func clusterFailover(t *testing.T, stopNode func(*redistest.Server)) (meanwhile int) {
	c := newClustered(t, "shards=6")
	q := c.engine.queue("q")
	on := c.spread("q")
	victim, slot := on[0], c.slot(q.shards[0])
	healthy := func(key string) bool { return on[q.ofKey(key).n] != victim }

	l := outage.NewLedger(t, "q")
	l.Forgetful = true
	l.Work(c.client, tarry.WorkerConfig{LeaseTTR: leaseTime})
	stop := l.Produce(c.client, 0, 3*time.Second, 6*time.Second, time.Hour)
	l.More(500, longWait)
	stop()
	catchUp(t, victim, c.Replica(victim))

	since := time.Now()
	stopNode(victim)
	stop = l.Produce(c.client, 0, 100*time.Millisecond, time.Hour)
	c.Owner(slot)
	took := time.Now()
	l.Change(func() {
		for key, e := range l.Entries {
			if healthy(key) && e.Due.After(since) && e.Handled > 0 {
				meanwhile++
			}
		}
	})
	t.Logf("the replica took over after %v, and %d messages of other nodes were handled meanwhile", took.Sub(since), meanwhile)
	l.More(1, longWait)
	l.Await("a message of the shard", longWait, func() bool {
		for key, e := range l.Entries {
			if !healthy(key) && e.Due.After(took) && e.Handled > 0 {
				return true
			}
		}
		return false
	})
	t.Logf("pushes and handlers went on everywhere %v later", time.Since(took))
	l.More(500, longWait)
	stop()
	t.Logf("all that was due was handled %v later", l.Rest(longWait))
	l.Settled(c.client, longWait)
	return meanwhile
}

// TestFaultClusterDeadNode has one of three masters dead for good: that must not hold
// up what is on the others.
func TestFaultClusterDeadNode(t *testing.T) {
	t.Parallel()
	c := newClustered(t, "shards=1")
	for _, n := range c.Nodes {
		n.Do("CONFIG", "SET", "cluster-replica-no-failover", "yes")
	}
	owner := func(queue string) *redistest.Server { return c.Owner(c.slot(c.engine.queue(queue).shards[0])) }
	victim, dead, alive := owner("q0"), "q0", ""
	for n := 1; alive == ""; n++ {
		if queue := fmt.Sprint("q", n); owner(queue) != victim {
			alive = queue
		}
	}
	const ttr = time.Hour
	engines := []*Engine{c.engine} // more of them, so that a busy machine does not count
	for range 4 {
		engines = append(engines, openStore(t, c.URL()))
	}
	for n, e := range engines {
		push(t, e, plain(dead, fmt.Sprint(n)), plain(alive, fmt.Sprint(n)))
	}
	victim.Kill()

	// A leased message is returned at once, not when the dead node is given up.
	n := 0
	swift(t, "a lease beside a dead node", patience, func() time.Duration {
		e := engines[n]
		n++
		grant, err := e.Lease(t.Context(), []engine.Want{{Queue: dead, Max: 1, TTR: ttr}, {Queue: alive, Max: 1, TTR: ttr}})
		if err != nil {
			t.Fatal(err)
		}
		fails(t, grant.Queues[0].Err, tarry.ErrUnavailable)
		got := grant.Queues[1].Messages
		if len(got) != 1 {
			t.Fatalf("leased %d messages, %v", len(got), grant.Queues[1].Err)
		}
		left := time.Until(got[0].Deadline)
		if s := settle1(t, e, engine.Settlement{Token: got[0].Token, Do: engine.Ack}); s.Err != nil {
			t.Error(s.Err)
		}
		return ttr - left
	})

	for _, l := range leaseAll(t, c.engine, alive) {
		if s := settle1(t, c.engine, engine.Settlement{Token: l.Token, Do: engine.Ack}); s.Err != nil {
			t.Error(s.Err)
		}
	}

	// What is pushed to others is handled at once, while there are also such pushes that
	// fail.
	l := outage.NewLedger(t, alive)
	l.Forgetful = true
	l.Work(c.client, tarry.WorkerConfig{}, dead)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if _, err := c.client.Push(ctx, dead, nil); !errors.Is(err, tarry.ErrUnavailable) && ctx.Err() == nil {
				t.Errorf("a push to a dead node ends with %v", err)
			}
		}
	}()
	var took []time.Duration
	held := 0
	for n := range 20 {
		began := time.Now()
		l.Push(c.client, fmt.Sprint("after ", n), 0)
		l.Rest(longWait)
		if took = append(took, time.Since(began)); took[n] >= patience {
			held++
		}
	}
	cancel()
	<-ended
	t.Logf("messages took %v", took)
	if held > len(took)/2 { // a lease and a push may have to find out first
		t.Errorf("%d of %d wait for the dead node", held, len(took))
	}
}
