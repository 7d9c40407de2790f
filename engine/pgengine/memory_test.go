package pgengine

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// A late ack of a dead message, beside a push of its key, may leave a memory where a live
// message holds the key. That must not keep the live one from being acked.
func TestMemoryBesideALiveKey(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	c := open(t, pool, schema)
	ctx := t.Context()
	_, err := c.Push(ctx, "orders", nil, tarry.Key("42"), tarry.Remember(time.Hour))
	ok(t, err)
	_, err = pool.Exec(ctx, `INSERT INTO `+schema+`.memory (queue, key, id, due, ending, ended, forgotten)
		SELECT queue, key, 1, due, 2, due, due + 1000000 FROM `+schema+`.message`)
	ok(t, err)
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1})
	ok(t, err)
	settled, err := c.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
	ok(t, err)
	ok(t, settled[0].Err)
	info, err := c.Get(ctx, tarry.ByKey("42").Of("orders"))
	ok(t, err)
	if info.State != tarry.Finished || info.Ending != tarry.WasAcked {
		t.Errorf("it is %v, %v; want finished, acked", info.State, info.Ending)
	}
}

// measuring records the most bytes of bodies in one statement, and in one batch.
type measuring struct {
	sender
	statement, batch int
}

func (m *measuring) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	batch := 0
	for _, q := range b.QueuedQueries {
		n := 0
		for _, arg := range q.Arguments {
			if bodies, ok := arg.([][]byte); ok {
				for _, body := range bodies {
					n += len(body)
				}
			}
		}
		m.statement = max(m.statement, n)
		batch += n
	}
	m.batch = max(m.batch, batch)
	return m.sender.SendBatch(ctx, b)
}

// However large the bodies of a call are together, each batch has a limited part of them.
func TestLargeBodiesApart(t *testing.T) {
	t.Parallel()
	e := raw(t)
	push(t, e, engine.Message{Queue: "q"})
	conn, err := e.store.pool.Acquire(t.Context())
	ok(t, err)
	defer conn.Release()
	m := &measuring{sender: conn}
	in := e.store.tx(m)
	body := make([]byte, pageBytes/4)
	var rows []*sqlengine.Row
	for i := range 10 {
		rows = append(rows, &sqlengine.Row{ID: engine.ID(1_000_000 + i), Queue: 1, Content: engine.Content{Body: body}})
	}
	rows[3].Content.Body = make([]byte, pageBytes+1)
	in.Insert(t.Context(), rows)
	in.Replace(t.Context(), rows)
	ok(t, in.send(t.Context()))
	if m.statement > pageBytes+1<<10 || m.batch > 2*pageBytes {
		t.Errorf("%d bytes in a statement, %d in a batch", m.statement, m.batch)
	}
	var n int
	ok(t, e.store.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+e.store.schema+".message").Scan(&n))
	if n != 11 {
		t.Errorf("%d rows", n)
	}
}
