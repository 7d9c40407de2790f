package redisengine

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestHistoriesOnABadNetwork runs the suite's histories while answers of the server are lost
// with their connections, or requests are delivered only after the engine has asked again:
// what is asked for must be done once, however often that is.
func TestHistoriesOnABadNetwork(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxies := map[engine.Engine]*redistest.Proxy{}
	clock := enginetest.NewClock()
	open := func(t *testing.T, p *redistest.Proxy, prefix string) engine.Engine {
		e := openURL(t, p.URL(), "shards=1", "prefix="+prefix)
		e.stopped = clock.Now
		proxies[e] = p
		return e
	}
	var lost, late atomic.Int64
	enginetest.RunFaults(t, enginetest.Harness{
		Clock: clock,
		Open: func(t *testing.T) engine.Engine {
			return open(t, redistest.StartProxy(t, server.Addr()), freshPrefix())
		},
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return open(t, proxies[e], e.(*Engine).prefix)
		},
		Histories: 5,
		Faults: []enginetest.Fault{{
			Name: "an answer is lost",
			Arm:  func(e engine.Engine, n int) { proxies[e].LoseAnswer(n) },
			Disarm: func(e engine.Engine) bool {
				happened := proxies[e].LoseAnswer(0)
				if happened {
					lost.Add(1)
				}
				return happened
			},
			Most: 3,
		}, {
			Name: "a request is delivered late",
			Arm:  func(e engine.Engine, _ int) { proxies[e].Withhold("EVALSHA") },
			Disarm: func(e engine.Engine) bool {
				happened := proxies[e].Deliver()
				if happened {
					late.Add(1)
				}
				return happened
			},
			Most: 1,
		}},
	})
	t.Logf("%d answers were lost, %d requests came late", lost.Load(), late.Load())
	if min(lost.Load(), late.Load()) < 10 && os.Getenv("TARRY_TEST_SEED") == "" {
		t.Error("those are few")
	}
}
