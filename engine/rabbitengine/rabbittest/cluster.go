package rabbittest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Cluster is a cluster of brokers.
type Cluster struct {
	Nodes []*Server

	t testing.TB
}

// StartCluster starts a cluster of n nodes, one after another, and waits until all know each
// other. A quorum queue has members on three.
func StartCluster(t testing.TB, n int, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	daemon := startDaemon(t)
	for i := range n {
		c.Nodes = append(c.Nodes, start(t, opts, daemon, fmt.Sprintf("rabbit%d", i)))
		if i == 0 {
			opts = append(slices.Clip(opts), Settings(
				"cluster_formation.peer_discovery_backend = classic_config",
				"cluster_formation.classic_config.nodes.1 = "+c.Nodes[0].name))
		}
	}
	c.Await()
	return c
}

// Await waits until all running nodes see each other running.
func (c *Cluster) Await() {
	c.t.Helper()
	servertest.Await(c.t, "the nodes to see one another", func() error {
		for _, n := range c.Nodes {
			if !n.Running() {
				continue
			}
			seen := n.Eval("[N || N <- [node() | nodes()], rabbit:is_running(N)].")
			for _, m := range c.Nodes {
				if m.Running() != strings.Contains(seen, m.name) {
					return fmt.Errorf("%s sees %s", n.name, seen)
				}
			}
		}
		return nil
	})
}

// MoveStuck moves the leader of queues whose dead-lettered messages are not confirmed, and
// returns how many it moved. A RabbitMQ before 4.2 may wait forever for such a confirm if
// the target's leader changed at that moment. It keeps the messages, and the next leader
// sends them again.
func (c *Cluster) MoveStuck() int {
	c.t.Helper()
	n, err := strconv.Atoi(c.Nodes[0].Eval(`length([ra:transfer_leadership(L, {Name, hd(Nodes -- [Node])}) ||
		Q <- rabbit_amqqueue:list(), #{nodes := Nodes} <- [amqqueue:get_type_state(Q)],
		{ok, {_, {Held, _}}, {Name, Node} = L} <- [ra:leader_query(amqqueue:get_pid(Q), fun rabbit_fifo:query_stat_dlx/1)],
		Held > 0]).`))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
