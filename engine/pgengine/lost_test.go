package pgengine

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// A lease of several queues, of which a failover has lost one, fails, and the next one finds
// what is left.
func TestLeaseWithALostQueue(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	e := another(t, pool, schema)
	push(t, e, engine.Message{Queue: "kept"}, engine.Message{Queue: "lost"})
	for _, text := range []string{
		"DELETE FROM " + schema + ".message WHERE queue = (SELECT num FROM " + schema + ".queue WHERE name = 'lost')",
		"DELETE FROM " + schema + ".queue WHERE name = 'lost'",
	} {
		_, err := pool.Exec(t.Context(), text)
		ok(t, err)
	}
	wants := []engine.Want{{Queue: "lost", Max: 1, TTR: time.Minute, Remote: true}, {Queue: "kept", Max: 1, TTR: time.Minute, Remote: true}}
	if _, err := e.Lease(t.Context(), wants); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("the first lease: %v", err)
	}
	g, err := e.Lease(t.Context(), wants)
	ok(t, err)
	if n := len(g.Queues[1].Messages); n != 1 {
		t.Errorf("then %d messages were leased", n)
	}
}
