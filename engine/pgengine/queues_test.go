package pgengine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// counter is a tracer that counts the statements of calls whose context it made.
type counter struct{ n atomic.Int64 }

func (c *counter) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, c, true)
}

func (c *counter) count(ctx context.Context) {
	if ctx.Value(c) != nil {
		c.n.Add(1)
	}
}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (c *counter) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchQueryData) {
	c.count(ctx)
}
func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.count(ctx)
	return ctx
}
func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A page of many queues takes no more statements than one of few.
func TestQueuesInFewStatements(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(pgtest.Shared(t))
	ok(t, err)
	said := new(counter)
	cfg.ConnConfig.Tracer = said
	pool := connectWith(t, cfg)
	e := newEngine(pool, &Config{Schema: newSchema(t, pool)}, nil)
	defer e.Close()
	page := func(queues int) int64 {
		t.Helper()
		msgs := make([]engine.Message, queues)
		for i := range msgs {
			msgs[i] = engine.Message{Queue: fmt.Sprintf("q%03d", i), Due: engine.When{In: time.Hour}}
		}
		_, err := e.Push(t.Context(), msgs)
		ok(t, err)
		before := said.n.Load()
		got, _, err := e.Queues(said.context(t.Context()), "", engine.MaxPage)
		ok(t, err)
		if len(got) != queues || got[queues-1].Scheduled == 0 || got[queues-1].NextDue.IsZero() {
			t.Fatalf("%d queues of %d, the last %+v", len(got), queues, got[len(got)-1])
		}
		return said.n.Load() - before
	}
	few, many := page(4), page(400)
	if few == 0 || many > few {
		t.Errorf("4 queues take %d statements, 400 take %d", few, many)
	}
}
