package pgengine

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func raw(t testing.TB) *Engine {
	t.Helper()
	pool := connect(t, pgtest.Shared(t))
	return another(t, pool, newSchema(t, pool))
}

// another opens a store once more, as another process does.
func another(t testing.TB, pool *pgxpool.Pool, schema string) *Engine {
	t.Helper()
	e := newEngine(pool, &Config{Schema: schema}, nil)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func push(t testing.TB, e engine.Engine, msgs ...engine.Message) []engine.PushResult {
	t.Helper()
	r, err := e.Push(t.Context(), msgs)
	ok(t, err)
	for i := range r {
		ok(t, r[i].Err)
	}
	return r
}

func lease(t testing.TB, e engine.Engine, queue string, most int) engine.Granted {
	t.Helper()
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: most, TTR: time.Minute, Remote: true}})
	ok(t, err)
	ok(t, g.Queues[0].Err)
	return g.Queues[0]
}

func settle(t testing.TB, e engine.Engine, s ...engine.Settlement) []engine.Settled {
	t.Helper()
	r, err := e.Settle(t.Context(), s)
	ok(t, err)
	return r
}

// What PostgreSQL's text does not take is kept as it came, and fails nobody else's call.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	e := raw(t)
	keys := []string{"a\x00b", "\x00", "\x10", "\x10\x00", "\x10\x30", "a"}
	var msgs []engine.Message
	for _, key := range keys {
		msgs = append(msgs, engine.Message{Queue: "q", Key: key, Content: engine.Content{
			ContentType: "a\x00b", Headers: []engine.Header{{Name: "h", Value: "\x00"}}, Body: []byte(key)}})
	}
	push(t, e, msgs...)
	for _, key := range keys {
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
		ok(t, err)
		if info.Key != key || string(info.Body) != key {
			t.Errorf("%q came back as %q with %q", key, info.Key, info.Body)
		}
	}
	for _, reason := range []string{"x\x00y", "\xff", "\x10"} {
		l := lease(t, e, "q", 2).Messages
		got := settle(t, e, engine.Settlement{Token: l[0].Token, Do: engine.Bury, Reason: reason}, engine.Settlement{Token: l[1].Token, Do: engine.Ack})
		if got[0].Err != nil || got[1].Err != nil {
			t.Errorf("%q: %v", reason, got)
		}
		info, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l[0].ID})
		ok(t, err)
		t.Logf("%q is kept as %q", reason, info.LastError)
	}
}
