package pgengine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// sender is a connection, a pool, or a caller's transaction.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// tx is a transaction. Its beginning and its writes wait in batch until it reads or commits.
// Each batch is one round trip.
type tx struct {
	sender
	*store
	batch *pgx.Batch
	now   time.Time
	err   error // of an earlier send: nothing more is sent
}

// tx returns a transaction that sends by a connection.
func (s *store) tx(by sender) *tx { return &tx{sender: by, store: s, batch: new(pgx.Batch)} }

// write queues a statement without an answer.
func (t *tx) write(text string, args ...any) { t.batch.Queue(text, args...) }

// writeAll is write with columns of n values. It writes nothing if n is 0.
func (t *tx) writeAll(n int, text string, columns ...any) {
	if n > 0 {
		t.write(text, columns...)
	}
}

// read queues a statement and passes its rows to scan.
func (t *tx) read(text string, scan func(sqlengine.Scanner) error, args ...any) {
	t.batch.Queue(text, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := scan(rows); err != nil {
				rows.Close()
				return err
			}
		}
		return rows.Err()
	})
}

// send sends the queued statements. After an error it returns that error.
func (t *tx) send(ctx context.Context) error {
	b := t.batch
	t.batch = new(pgx.Batch)
	if t.err == nil {
		defer t.connections.Trips.Since(time.Now())
		t.err = t.SendBatch(ctx, b).Close()
	}
	return t.err
}

func (t *tx) Open(ctx context.Context, first sqlengine.First) (o sqlengine.Opened, err error) {
	if wait := lockTimeouts[first.Timeout]; wait != "" {
		t.write(wait)
	}
	if len(first.Lock) > 0 {
		t.write(t.sql.lockQueues, first.Lock)
		t.time("NULL")
	}
	t.heads(first.From, &o.Heads)
	t.rows(first.Queues, &o.Heads)
	if len(first.IDs) > 0 {
		t.byID(&o.Rows, first.IDs, sqlengine.Wait, false)
	}
	if len(first.Names) > 0 {
		t.byKey(&o.Rows, &o.Memories, first.Names, sqlengine.Wait, false)
	}
	o.Ranges = t.ranges(first.Ranges)
	err = t.send(ctx)
	o.Now = t.now
	return o, err
}

// time queues the query for the time, which makes settings first.
func (t *tx) time(settings string) {
	t.read("SELECT concat("+settings+"), "+micros, func(r sqlengine.Scanner) error {
		var us int64
		err := r.Scan(nil, &us)
		t.now = time.UnixMicro(us).UTC()
		return err
	})
}

func (t *tx) Heads(ctx context.Context, from []sqlengine.LowBound) (heads []sqlengine.Heads, err error) {
	t.heads(from, &heads)
	return heads, t.send(ctx)
}

func (t *tx) Leave(_ context.Context, from []sqlengine.LowBound) func() []sqlengine.Heads {
	var heads []sqlengine.Heads
	t.heads(from, &heads)
	return func() []sqlengine.Heads { return heads }
}

func (t *tx) SaveQueue(_ context.Context, q *sqlengine.Queue) {
	t.write(t.sql.saveQueue, q.Num, q.Paused, sqlengine.EncodeSettings(&q.Settings), int64(q.Revision), q.Base, q.Remembers, q.Settings.DeadKeep == 0)
}

func (t *tx) Tally(_ context.Context, changes []sqlengine.Tally) {
	n := len(changes)
	queues, counts, minutes, ns := make([]int64, n), make([]int16, n), make([]int64, n), make([]int64, n)
	for i, c := range changes {
		queues[i], counts[i], minutes[i], ns[i] = c.Queue, int16(c.Count), c.Minute, c.N
	}
	t.writeAll(n, t.sql.tally, queues, counts, minutes, ns)
}

func (t *tx) Stock(ctx context.Context, queues []int64, ms int64) (map[int64]sqlengine.Stock, error) {
	found := make(map[int64]sqlengine.Stock, len(queues))
	t.read(t.sql.stock, sqlengine.ScanStock(found), queues, ms, rules.MinuteOf(ms))
	return found, t.send(ctx)
}

func (t *tx) Due(ctx context.Context, queue, end int64) (due []sqlengine.Tally, err error) {
	t.read(t.sql.due, sqlengine.ScanDue(queue, &due), queue, end)
	return due, t.send(ctx)
}
