package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// Vanished tests that a machine which vanishes during a lease, with the queue's row locked, does
// not delay others for long. The store's connections go through the proxy.
func Vanished(t *testing.T, other engine.Whole, store sqlengine.Store, p *servertest.Proxy) {
	_, err := other.Configure(patience(t), "q", engine.Settings{InFlight: 2}, "")
	ok(t, err)
	push(t, other, engine.Message{Queue: "q"})
	b := &between{Store: store}
	b.open = func() { p.Hang(true) }
	e := sqlengine.New(b, sqlengine.Config{Name: "behind a proxy", MaxBody: 1 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wants := []engine.Want{{Queue: "q", Max: 1, TTR: time.Minute, Remote: true}}
	if g, err := e.Lease(ctx, wants); err == nil {
		t.Fatalf("it has leased %+v", g)
	}
	defer p.Hang(false)
	defer p.Cut()
	const long = time.Minute // many times as long as it takes
	ctx, cancel = context.WithTimeout(t.Context(), long)
	defer cancel()
	start := time.Now()
	g, err := other.Lease(ctx, wants)
	ok(t, err)
	if len(g.Queues[0].Messages) != 1 {
		t.Errorf("the other has leased %+v", g)
	}
	t.Logf("it waited for %v", time.Since(start))
}
