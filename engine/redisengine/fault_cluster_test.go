package redisengine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// noFailover keeps the replicas of a cluster from taking over.
func (c *clustered) noFailover() {
	for _, n := range c.Nodes {
		n.Do("CONFIG", "SET", "cluster-replica-no-failover", "yes")
	}
}

// ownerOf is the master that a key is on.
func (c *clustered) ownerOf(key string) *redistest.Server {
	c.t.Helper()
	m := c.Nodes[len(c.Nodes)-1].Do("CLUSTER", "KEYSLOT", key)
	slot, err := m.AsInt64()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.Owner(int(slot))
}

// queues returns names of queues of one shard that are on a master, or that are not.
func (c *clustered) queues(master *redistest.Server, on bool, n int) (names []string) {
	c.t.Helper()
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprint("q", i)
		if (c.ownerOf(newQueue(c.engine, name).shards[0].keys[metaKey]) == master) == on {
			names = append(names, name)
		}
	}
	return names
}

// TestFaultClusterQuietNodeDies has the master of queues in which nothing happens die, for
// good: whoever waits for these and for others must get the others' messages.
func TestFaultClusterQuietNodeDies(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*redistest.Server){"dead": (*redistest.Server).Kill, "hanging": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClustered(t, "shards=1")
			c.noFailover()
			e := c.engine
			victim, other := c.ownerOf(e.registry.names), openStore(t, c.URL())
			engines := []*Engine{e} // more of them, so that a busy machine does not count
			for range 4 {
				engines = append(engines, openStore(t, c.URL()))
			}
			quiet, alive := c.queues(victim, true, 5), c.queues(victim, false, 1)[0]
			wants := []engine.Want{{Queue: alive, Max: 10}}
			for _, name := range quiet {
				m := plain(name, "far")
				m.Due.In = time.Hour
				push(t, e, m)
				wants = append(wants, engine.Want{Queue: name, Max: 10})
			}
			lease := func(e *Engine) (got int, took time.Duration) {
				took = ends(t, longWait, func() {
					grant, err := e.Lease(t.Context(), wants)
					if err != nil {
						t.Error(err)
						return
					}
					if err := grant.Queues[0].Err; err != nil {
						t.Error(err)
					}
					got = len(grant.Queues[0].Messages)
				})
				return got, took
			}
			for _, e := range engines {
				defer e.Watch(func(string) {})()
				eventually(t, "the subscription", e.hears.Load)
				lease(e) // from here on it is known that all of it lies ahead
			}
			age := func(e *Engine) { // as if nothing had been heard since
				for _, name := range quiet {
					s := e.queue(name).shards[0]
					s.mu.Lock()
					if !s.asked.IsZero() {
						s.asked = s.asked.Add(-Recheck)
					}
					s.mu.Unlock()
				}
			}
			stop(victim)
			n := 0
			next := func(e *Engine) time.Duration {
				age(e)
				n++
				push(t, e, plain(alive, fmt.Sprint(n)))
				got, took := lease(e)
				if got != 1 {
					t.Errorf("leased %d messages of 1", got)
				}
				return took
			}
			swift(t, "the first lease", answerTimeout, func() time.Duration { return next(engines[n]) })
			for range 5 {
				next(e)
			}
			c.Fail(victim)
			swift(t, "a lease once it is known that the node is dead", downTimeout, func() time.Duration { return next(e) })
			// The other refs are reported as unreachable.
			grant, err := e.Lease(t.Context(), wants[1:2])
			if err != nil {
				t.Fatal(err)
			}
			fails(t, grant.Queues[0].Err, engine.ErrUnavailable)
			if n := enginetest.FigureOf(t, e, "redis_shards_down", ""); n < float64(len(quiet)) {
				t.Errorf("%v shards are told to be down", n)
			}

			// A settlement that knows the queue only by its token ends in time.
			swift(t, "a settlement", answerTimeout, func() time.Duration {
				return ends(t, longWait, func() {
					tok := codec.Token{Queue: uint64(fingerprintOf("unknown")), ID: newID(1, 1, 0)}
					settle1(t, other, engine.Settlement{Token: tok.String(), Do: engine.Ack})
				})
			})
			if name == "hanging" {
				victim.Resume()
				eventually(t, "the queues to be heard of again", func() bool {
					grant, err := e.Lease(t.Context(), wants)
					if err != nil {
						t.Fatal(err)
					}
					for _, g := range grant.Queues {
						if g.Err != nil {
							return false
						}
					}
					return true
				})
				if len(e.downShards()) > 0 {
					t.Error("shards stay down")
				}
				eventually(t, "no shards to be told to be down", func() bool { return enginetest.FigureOf(t, e, "redis_shards_down", "") == 0 })
			}
		})
	}
}

// TestFaultClusterPeeksBesideANode that is dead or hangs: at what the other shards have, as a
// lease takes it.
func TestFaultClusterPeeksBesideANode(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*redistest.Server){"dead": (*redistest.Server).Kill, "hanging": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClustered(t, "shards=6")
			c.noFailover()
			e := c.engine
			on := c.spread("q")
			victim := on[0]
			var first engine.ID // of those on other nodes
			for i, r := range push(t, e, inTurn("q", 50)...) {
				if key := fmt.Sprint("k", i); on[e.queue("q").ofKey(key).n] != victim {
					first = r.ID
					break
				}
			}
			stop(victim)
			peek := func() (took time.Duration) {
				return ends(t, longWait, func() {
					if got := peek1(t, e, "q"); got.ID != first {
						t.Errorf("%v is first, not %v", got.ID, first)
					}
				})
			}
			peek() // which finds out
			swift(t, "a peek beside the node", downTimeout, peek)
			if got := enginetest.MustLease(t, e, "q", 1).Messages; len(got) != 1 || got[0].ID != first {
				t.Errorf("leased %+v, not %v", got, first)
			}
		})
	}
}

// inTurn are messages of the keys k0, k1, … in the order of leases.
func inTurn(queue string, n int) (msgs []engine.Message) {
	for i := range n {
		m := plain(queue, fmt.Sprint("k", i))
		m.Priority = new(uint32(i))
		msgs = append(msgs, m)
	}
	return msgs
}

// TestFaultClusterRegistryDies kills the master that the registry is on, and in turn
// those where ids are reserved: pushes to others go on, also to queues that nobody has
// used before. Once a replica has taken over, all of these are listed.
func TestFaultClusterRegistryDies(t *testing.T) {
	t.Parallel()
	c := newClustered(t, "shards=1")
	c.noFailover()
	e := c.engine
	victim := c.ownerOf(e.registry.names)
	healthy := c.queues(victim, false, 6)
	push(t, e, plain(healthy[0], "k"))
	catchUp(t, victim, c.Replica(victim))
	replica := c.Replica(victim)
	victim.Kill()
	for n, name := range healthy {
		try := 0
		swift(t, "a push to "+name, patience+time.Second, func() time.Duration {
			spent(e)
			e.ids.at = n % len(idKeys)
			try++
			return ends(t, longWait, func() {
				for _, r := range push(t, e, plain(name, fmt.Sprint(n, ".", try)), plain(name, "")) {
					if r.Err != nil {
						t.Errorf("a push to %s: %v", name, r.Err)
					}
				}
			})
		})
		// They can be worked on, too.
		for _, l := range leaseAll(t, e, name) {
			if s := settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Release}); s.Err != nil {
				t.Error(s.Err)
			}
		}
	}
	replica.Do("CLUSTER", "FAILOVER", "TAKEOVER")
	eventually(t, "the first node to tell who has the slots now", func() bool {
		e, err := Open(t.Context(), params(t, c.URL()))
		return err == nil && e.Close() == nil
	})
	other := openClient(t, c.URL())
	outage.Succeeds(t, longWait, func() error {
		queues, _, err := other.Queues(t.Context(), "", 0)
		if err == nil && len(queues) != len(healthy) {
			err = fmt.Errorf("of %d queues %d are listed", len(healthy), len(queues))
		}
		return err
	})
}

// TestFaultRegistryForgot: the registry never heard of a queue. Whoever leases from it
// has it listed, and whoever pushed finds its messages.
func TestFaultRegistryForgot(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	pusher := openStore(t, s.URL())
	id := push(t, pusher, plain("q", "k"))[0].ID
	s.Do("DEL", pusher.registry.names, pusher.registry.seen, pusher.registry.prints)
	if found, err := pusher.Find(t.Context(), []engine.ID{id}); err != nil || found[0] != "q" {
		t.Errorf("whoever pushed finds it in %q, %v", found, err)
	}
	worker, settler := openStore(t, s.URL()), openStore(t, s.URL())
	grant, err := worker.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, Remote: true}})
	if err != nil || len(grant.Queues[0].Messages) != 1 {
		t.Fatalf("%+v, %v", grant, err)
	}
	queues, _, err := settler.Queues(t.Context(), "", 10)
	if err != nil || len(queues) != 1 || queues[0].Queue != "q" {
		t.Errorf("listed %+v, %v", queues, err)
	}
	settler = openStore(t, s.URL())
	if r := settle1(t, settler, engine.Settlement{Token: grant.Queues[0].Messages[0].Token, Do: engine.Ack}); r.Err != nil {
		t.Error(r.Err)
	}
}
