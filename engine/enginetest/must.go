package enginetest

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// The functions below are for tests of an engine outside the suite.

// MustPush pushes messages in one call. Each must succeed.
func MustPush(t testing.TB, e engine.Engine, msgs ...engine.Message) []engine.PushResult {
	t.Helper()
	results, err := e.Push(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("push of %d, message %d: %v", len(msgs), i+1, r.Err)
		}
	}
	return results
}

// MustLease leases once up to n messages of a queue.
func MustLease(t testing.TB, e engine.Engine, queue string, n int) engine.Granted {
	t.Helper()
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: n}})
	if err == nil {
		err = g.Queues[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
	return g.Queues[0]
}

// MustSettle settles one lease in a call that must succeed; the settlement may be refused.
func MustSettle(t testing.TB, e engine.Engine, s engine.Settlement) engine.Settled {
	t.Helper()
	settled, err := e.Settle(t.Context(), []engine.Settlement{s})
	if err != nil {
		t.Fatal(err)
	}
	return settled[0]
}
