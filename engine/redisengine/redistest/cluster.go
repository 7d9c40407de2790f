package redistest

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

const (
	clusterMasters = 3
	clusterNodes   = 2 * clusterMasters
	clusterSlots   = 16384
)

// How long a node is silent until it counts as failed, in milliseconds. On a busy machine a
// healthy node is silent for seconds, so only a cluster that waits for a failover is hasty.
const (
	hasty = "2000"
	calm  = "120000"
)

// Cluster is a Redis cluster of three masters with one replica each.
type Cluster struct {
	// Nodes are all six. At first, 0, 1 and 2 are the masters, with the slots in this order,
	// and node i+3 is the replica of node i.
	Nodes []*Server

	t   testing.TB
	ids map[*Server]string
}

// StartCluster starts a cluster and waits until all nodes agree that it is healthy. A node
// that does not run is replaced when Owner waits for that.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, ids: make(map[*Server]string)}
	for i := range clusterNodes {
		n := start(t, i, opts,
			"--cluster-enabled", "yes",
			"--cluster-node-timeout", calm,
			"--cluster-announce-ip", "127.0.0.1")
		n.Do("CONFIG", "SET", "cluster-node-timeout", hasty, "cluster-replica-no-failover", "yes") // so it forms sooner
		c.Nodes = append(c.Nodes, n)
		c.ids[n] = text(t, n.Do("CLUSTER", "MYID"))
	}
	for i, n := range c.Nodes {
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < clusterMasters {
			first, end := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters
			n.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(end-1))
		}
		// Every node meets every other: that is faster than gossip.
		for _, m := range c.Nodes[:i] {
			n.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(m.Port(0)), strconv.Itoa(m.Port(1)))
		}
	}
	for i, n := range c.Nodes[clusterMasters:] {
		servertest.Await(t, "a replica to know its master", func() error {
			_, err := n.try("CLUSTER", "REPLICATE", c.ids[c.Nodes[i]])
			return err
		})
	}
	c.Await()
	for _, n := range c.Nodes {
		n.Do("CONFIG", "SET", "cluster-node-timeout", calm, "cluster-replica-no-failover", "no")
	}
	return c
}

// URL names the first node, and the others as further addresses.
func (c *Cluster) URL() string { return urlOf("redis+cluster", "", c.Nodes) }

func urlOf(scheme, path string, nodes []*Server) string {
	s := scheme + "://" + nodes[0].Addr() + path
	for i, n := range nodes[1:] {
		s += []string{"?", "&"}[min(i, 1)] + "addr=" + n.Addr()
	}
	return s
}

// Await waits until all running nodes agree on the topology, each replica follows its
// master, and the cluster serves all slots.
func (c *Cluster) Await() {
	c.t.Helper()
	servertest.Await(c.t, "the cluster to be well", c.ill)
}

// ill returns what is wrong with the cluster, or nil.
func (c *Cluster) ill() error {
	views := make(map[*Server]view)
	for _, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		v, err := viewOf(n)
		if err != nil {
			return err
		}
		views[n] = v
	}
	for n, v := range views {
		for m, w := range views {
			self, seen := w[c.ids[m]], v[c.ids[m]]
			if !seen.well() || seen.role != self.role || seen.slots != self.slots {
				return fmt.Errorf("%s sees %s as %+v, which is %+v", n.Addr(), m.Addr(), seen, self)
			}
		}
		if err := c.nodeIll(n); err != nil {
			return fmt.Errorf("%s: %w", n.Addr(), err)
		}
	}
	return nil
}

func (c *Cluster) nodeIll(n *Server) error {
	info, err := n.info("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	if info["cluster_state"] != "ok" {
		return fmt.Errorf("cluster_state is %q", info["cluster_state"])
	}
	return n.replicationIll()
}

// Masters returns the running nodes that are masters and own slots.
func (c *Cluster) Masters() []*Server {
	c.t.Helper()
	var masters []*Server
	for _, n := range c.Nodes {
		if self, ok := c.self(n); ok && self.master() && self.slots != "" {
			masters = append(masters, n)
		}
	}
	return masters
}

// Replica returns the running replica of a node, which itself need not run.
func (c *Cluster) Replica(of *Server) *Server {
	c.t.Helper()
	for _, n := range c.Nodes {
		if self, ok := c.self(n); ok && self.role == c.ids[of] {
			return n
		}
	}
	c.t.Fatalf("%s has no running replica", of.Addr())
	return nil
}

// Owner returns the master that owns a slot. If it does not run, Owner waits for its replica
// to take over.
func (c *Cluster) Owner(slot int) *Server {
	c.t.Helper()
	owner := c.owner(slot)
	if owner != nil {
		return owner
	}
	c.suspectAfter(hasty)
	servertest.Await(c.t, fmt.Sprintf("an owner of slot %d", slot), func() error {
		owner = c.owner(slot)
		if owner == nil {
			return fmt.Errorf("no running node owns it")
		}
		return nil
	})
	c.suspectAfter(calm)
	return owner
}

// Fail waits until all running nodes count n, which does not run, as failed.
func (c *Cluster) Fail(n *Server) {
	c.t.Helper()
	c.suspectAfter(hasty)
	servertest.Await(c.t, "a node to count as failed", func() error {
		for _, m := range c.Nodes {
			if !m.Running() {
				continue
			}
			v, err := viewOf(m)
			if err == nil && !v[c.ids[n]].failed() {
				err = fmt.Errorf("%s sees it as %+v", m.Addr(), v[c.ids[n]])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	c.suspectAfter(calm)
}

// suspectAfter sets how long a node is silent until the running nodes count it as failed.
func (c *Cluster) suspectAfter(timeout string) {
	c.t.Helper()
	for _, n := range c.Nodes {
		if n.Running() {
			n.Do("CONFIG", "SET", "cluster-node-timeout", timeout)
		}
	}
}

// owner returns the node that claims the slot at the latest epoch. A node resumed after a
// failover may still claim it.
func (c *Cluster) owner(slot int) *Server {
	c.t.Helper()
	var owner *Server
	latest := -1
	for _, n := range c.Nodes {
		if self, ok := c.self(n); ok && self.master() && self.owns(slot) && self.epoch > latest {
			owner, latest = n, self.epoch
		}
	}
	return owner
}

// self returns a running node's description of itself.
func (c *Cluster) self(n *Server) (member, bool) {
	c.t.Helper()
	if !n.Running() {
		return member{}, false
	}
	v, err := viewOf(n)
	if err != nil {
		c.t.Fatalf("%s: %v", n.Addr(), err)
	}
	return v[c.ids[n]], true
}
