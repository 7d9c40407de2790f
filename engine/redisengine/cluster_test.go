package redisengine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestClusterTimeGoesOn: what the nodes agreed on is known the worse the longer an
// answer took then; yet no grant shows less than an answer before it has shown.
func TestClusterTimeGoesOn(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.StartCluster(t).URL())
	e.clock.mu.Lock()
	e.clock.ahead -= 50 * time.Millisecond // so long
	e.clock.mu.Unlock()
	for i := range 20 {
		queue := fmt.Sprint("q", i)
		if all := leaseAll(t, e, queue); len(all) != 0 { // from here on it is known when to ask again
			t.Fatalf("leased %+v", all)
		}
		r := push(t, e, plain(queue, "k"))[0]
		grant, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if g := grant.Queues[0]; len(g.Messages) != 1 || grant.Now.Before(r.Due) {
			t.Fatalf("pushed %v for %v, at %v leased %+v", r.State, r.Due, grant.Now, g)
		}
	}
}

// TestClusterOfUnlikeClocks: nodes disagree about the time by less than what scripts
// correct. Whoever waits for a message is not kept asking for it.
func TestClusterOfUnlikeClocks(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t,
		redistest.NodeOption(0, redistest.Clock("-0.4s")), redistest.NodeOption(2, redistest.Clock("+0.4s")))
	e := openStore(t, c.URL(), "shards=1")
	for i := range 6 { // on all masters
		m := plain(fmt.Sprint("q", i), "k")
		m.Due.In = 100 * time.Millisecond
		r := push(t, e, m)[0]
		for asked := 1; ; asked++ {
			grant, err := e.Lease(t.Context(), []engine.Want{{Queue: m.Queue, Max: 1}})
			if err != nil {
				t.Fatal(err)
			}
			g := grant.Queues[0]
			if len(g.Messages) > 0 {
				if late := grant.Now.Sub(r.Due); asked > 10 || late < 0 {
					t.Errorf("asked %d times, it came %v after its due time", asked, late)
				}
				break
			}
			time.Sleep(g.NextDue.Sub(grant.Now)) // as a worker does
		}
	}
}
