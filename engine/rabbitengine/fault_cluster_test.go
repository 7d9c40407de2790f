package rabbitengine

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/internal/nettest"
)

// Of a cluster of three, the node is killed that leads all queues, then the one that all
// are connected to.
func TestFaultCluster(t *testing.T) {
	t.Parallel()
	cluster := rabbittest.StartCluster(t, 3, soon())
	first := opened(t, cluster.Nodes[0].URL(), Config{Unit: unit}) // whose node leads what it declares
	ok(t, first.Close())
	url := cluster.Nodes[1].URL()
	c, l := client(t, url), book(t)
	stop := load(l, c, client(t, url))
	l.More(100, faultPatience)
	cluster.Nodes[0].Kill()
	t.Logf("without a leader, all went on after %v", l.More(100, faultPatience))
	cluster.Nodes[0].Restart()
	cluster.Await()
	l.More(100, faultPatience)

	killed := time.Now()
	cluster.Nodes[1].Kill()
	failed(l, killed)
	cluster.Nodes[1].Restart()
	cluster.Await()
	t.Logf("all went on after %v", l.More(100, faultPatience))
	stop()
	for range 3 {
		if l.Rests(5 * time.Second) {
			return
		}
		t.Logf("%d queues were moved for the sake of what they hold", cluster.MoveStuck())
	}
	l.Rest(faultPatience)
}

// Who knows several nodes goes to another when one does not answer.
func TestNodesAreTriedInTurn(t *testing.T) {
	t.Parallel()
	real := rabbittest.Shared(t)
	proxy := rabbittest.StartProxy(t, real)
	u, err := url.Parse(real)
	ok(t, err)
	nobody := fmt.Sprintf("127.0.0.1:%d", nettest.FreePort(t))
	e := opened(t, "amqp://guest:guest@"+nobody+u.EscapedPath(), Config{Unit: unit, Nodes: []string{proxy.Addr(), u.Host}})
	pushed(t, e, engine.Message{})
	proxy.Refuse(true)
	proxy.Cut()
	settled(t, e, engine.Settlement{Token: leased(t, e, 1, time.Minute)[0].Token, Do: engine.Ack})
}
