package redisengine

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestHistoriesWithLostAnswers runs the suite's histories while answers of the
// server are lost with their connections: what was done without an answer must be
// done once, however often it is asked for.
func TestHistoriesWithLostAnswers(t *testing.T) {
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
	var lost atomic.Int64
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
		}},
	})
	t.Logf("%d answers were lost", lost.Load())
	if lost.Load() < 10 && os.Getenv("TARRY_TEST_SEED") == "" {
		t.Errorf("only %d answers were lost", lost.Load())
	}
}
