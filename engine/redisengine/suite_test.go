package redisengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// suite runs the conformance suite on stores of one server or cluster, each with a
// prefix of its own; without a clock, by that of the servers.
func suite(t *testing.T, rawURL string, clock *enginetest.Clock, histories int) {
	t.Helper()
	open := func(t *testing.T, prefix string) engine.Engine {
		e := openURL(t, rawURL, "prefix="+prefix)
		if clock != nil {
			e.stopped = clock.Now
		}
		return e
	}
	enginetest.Run(t, enginetest.Harness{
		Clock: clock,
		Open:  func(t *testing.T) engine.Engine { return open(t, freshPrefix()) },
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return open(t, e.(*Engine).prefix)
		},
		Histories: histories,
	})
}

func TestSuiteOneShard(t *testing.T) {
	t.Parallel()
	suite(t, redistest.Start(t).URL()+"?shards=1", enginetest.NewClock(), 10)
}

func TestSuiteThreeShards(t *testing.T) {
	t.Parallel()
	suite(t, redistest.Start(t).URL()+"?shards=3", enginetest.NewClock(), 10)
}

func TestSuiteServerClock(t *testing.T) {
	t.Parallel()
	suite(t, redistest.Start(t).URL(), nil, 2)
}

func TestSuiteSentinel(t *testing.T) {
	t.Parallel()
	suite(t, redistest.StartSentinel(t).URL()+"&shards=3", nil, 2)
}

func TestSuiteCluster(t *testing.T) {
	t.Parallel()
	suite(t, redistest.StartCluster(t).URL(), nil, 2)
}

func TestSuiteClusterInjectedClock(t *testing.T) {
	t.Parallel()
	suite(t, redistest.StartCluster(t).URL(), enginetest.NewClock(), 3)
}
