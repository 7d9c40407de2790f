package rabbittest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Cluster is several brokers that are one.
type Cluster struct {
	Nodes []*Server

	t testing.TB
}

// StartCluster starts a cluster of n nodes, one after the other, and waits until all know
// of one another. A quorum queue has a member on each of three.
func StartCluster(t testing.TB, n int, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	daemon, conf := startDaemon(t), newChoice(opts)
	for i := range n {
		c.Nodes = append(c.Nodes, start(t, conf, daemon, fmt.Sprintf("rabbit%d", i)))
		if i == 0 {
			conf.settings = append(conf.settings,
				"cluster_formation.peer_discovery_backend = classic_config",
				"cluster_formation.classic_config.nodes.1 = "+c.Nodes[0].name)
		}
	}
	c.Await()
	return c
}

// Await waits until all running nodes see each other run.
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

// MoveStuck has queues led by another node that hold what they have dead-lettered and that is
// not confirmed, and returns how many there were. A RabbitMQ before 4.2 may wait for ever for
// the confirm of what it sent a quorum queue whose leader had just changed; it keeps the
// messages, and the next leader sends them anew.
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
