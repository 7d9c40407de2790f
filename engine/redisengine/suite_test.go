package redisengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// Parts of the suite that a variant may do with, since TestSuiteOneShard and
// TestSuiteCluster run all.
var (
	// What differs where a queue has several shards.
	shardParts = []string{
		"Push", "AtomicPush", "ReplaceLeased", "LeaseOrder", "LeaseDue", "Lapse", "Cancel", "IfState", "Expiry", "List", "Range", "Count",
		"Forecast", "Pause", "Purge", "Redrive", "DeadKeep", "MaxPending", "InFlight", "Rate", "Reopen", "Race", "RaceLimits", "Many", "Finished", "History",
		"ClaimIf", "Peek", "Find", "Reprioritize",
	}

	// What a clock that is moved by hours shows.
	timeParts = []string{
		"LeaseDue", "Lapse", "ClockStep", "Settle", "Failures", "Expiry", "Remember", "Forecast", "Pause", "Defaults", "DeadKeep", "InFlight", "Rate", "Moment", "Finished", "History",
		"ClaimIf", "Peek", "Reprioritize",
	}

	// All that is asked of a server, once or a few times.
	callParts = []string{
		"Push", "AtomicPush", "LeaseDue", "Lapse", "Settle", "Failures", "Workers", "Cancel", "IfState", "Get", "Claim", "Expiry", "Remember", "List",
		"Count", "Forecast", "Pause", "Purge", "Redrive", "Settings", "DeadKeep", "MaxPending", "InFlight", "Rate", "Reopen", "Finished", "History",
		"ClaimIf", "Peek", "Find", "Reprioritize",
	}
)

// suite runs parts of the conformance suite, none: all, on stores of one server or
// cluster, each with a prefix of its own; without a clock, by that of the servers.
func suite(t *testing.T, rawURL string, clock *enginetest.Clock, histories int, parts ...string) {
	t.Helper()
	open := func(t *testing.T, prefix string) engine.Engine {
		e := openURL(t, rawURL, "prefix="+prefix)
		e.slack = longWait // no node hangs here, but the machine may be busy
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
		Parts:     parts,
	})
}

func TestSuiteOneShard(t *testing.T) {
	t.Parallel()
	suite(t, redistest.Start(t).URL()+"?shards=1", enginetest.NewClock(), 5)
}

func TestSuiteThreeShards(t *testing.T) {
	t.Parallel()
	suite(t, redistest.Start(t).URL()+"?shards=3", enginetest.NewClock(), 5, shardParts...)
}

func TestSuiteServerClock(t *testing.T) {
	t.Parallel()
	suite(t, redistest.Start(t).URL(), nil, 2)
}

func TestSuiteSentinel(t *testing.T) {
	t.Parallel()
	suite(t, redistest.StartSentinel(t).URL()+"&shards=3", nil, 1, callParts...)
}

func TestSuiteCluster(t *testing.T) {
	t.Parallel()
	suite(t, redistest.StartCluster(t).URL(), nil, 2)
}

func TestSuiteClusterInjectedClock(t *testing.T) {
	t.Parallel()
	suite(t, redistest.StartCluster(t).URL(), enginetest.NewClock(), 3, timeParts...)
}
