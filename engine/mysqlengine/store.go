package mysqlengine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// store is the tables with a prefix in a database.
type store struct {
	db      *sql.DB
	own     bool // db is closed with the store, and its transactions are READ COMMITTED
	sql     *statements
	several bool // connections take several statements at once
	packet  int  // most bytes of statements at once

	connections *sqlengine.Connections
}

var _ sqlengine.Store = (*store)(nil)

func (s *store) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	return s.in(ctx, op, func(t *tx) error { return do(t) })
}

// in runs do in a transaction, on its own connection.
func (s *store) in(ctx context.Context, op string, do func(*tx) error) error {
	conn, err := s.conn(ctx)
	if err != nil {
		return fault(ctx, op, err, false)
	}
	t := &tx{querier: conn, store: s}
	if !s.own {
		t.waiting = append(t.waiting, newStatement(readCommitted))
	}
	t.waiting = append(t.waiting, newStatement("START TRANSACTION"))
	committing := false
	if err = do(t); err == nil {
		err = t.err
	}
	if err == nil {
		committing = true
		t.write(ctx, newStatement("COMMIT"))
		err = t.send(ctx)
	}
	if err == nil {
		return conn.Close()
	}
	if readOnly(err) {
		hangUp(conn) // after a failover, a new connection may reach the new primary
	} else {
		rollback(conn)
	}
	if t.timeout == sqlengine.BriefTimeout && tookTooLong(err) {
		return sqlengine.ErrBusy
	}
	if ctx.Err() == nil && (!committing && cut(err) || errors.Is(err, driver.ErrBadConn) || readOnly(err)) {
		return sqlengine.Again(fault(ctx, op, err, false))
	}
	return rolledBackError(ctx, op, err, committing)
}

// rolledBackError converts the error of a transaction that was rolled back for the engine.
func rolledBackError(ctx context.Context, op string, err error, committing bool) error {
	switch {
	case conflicts[numberOf(err)] != nil:
		return conflicts[numberOf(err)]
	case errors.Is(err, sqlengine.ErrInternal):
		return err
	}
	return fault(ctx, op, err, committing)
}

// rollbackWithin bounds a rollback: a connection that takes longer is closed.
const rollbackWithin = time.Second

// rollback rolls back and returns the connection to the pool. If it fails, it closes the
// connection.
func rollback(conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		hangUp(conn)
	}
	_ = conn.Close() // it was returned or closed already
}

// hangUp closes a connection for good.
func hangUp(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// outside runs statements without a transaction. They may run twice.
func (s *store) outside(ctx context.Context, op string, do func(*tx) error) error {
	for n := 1; ; n++ {
		conn, err := s.conn(ctx)
		if err != nil {
			return fault(ctx, op, err, false)
		}
		if err = do(&tx{querier: conn, store: s}); err == nil {
			return conn.Close()
		}
		useless := cut(err) || readOnly(err)
		if useless {
			hangUp(conn)
		}
		_ = conn.Close() // it was returned or closed already
		if !useless || ctx.Err() != nil || n == uselessMost {
			return fault(ctx, op, err, false)
		}
	}
}

// uselessMost bounds how many connections may turn out to be cut, or to lead to a server that
// accepts no writes any more.
const uselessMost = 20

func (s *store) Heads(ctx context.Context, from []sqlengine.LowBound) (now time.Time, heads []sqlengine.Heads, err error) {
	err = s.outside(ctx, "lease", func(t *tx) error {
		now, heads, err = t.heads(ctx, from)
		return err
	})
	return now, heads, err
}

func (s *store) Names(ctx context.Context, names []string, create bool) (found []int64, err error) {
	err = s.outside(ctx, "queue", func(t *tx) error {
		numbers, err := t.numbers(ctx, names)
		missing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return numbers[n] != 0 })
		if err == nil && create && len(missing) > 0 {
			slices.Sort(missing)
			for some := range slices.Chunk(slices.Compact(missing), rowsMost) {
				made := newStatement(s.sql.makeNames)
				for i, name := range some {
					made.row(i, sqlengine.NewNumber(), name)
				}
				// Others may have made them by now.
				t.write(ctx, made.end(" ON DUPLICATE KEY UPDATE num = num"))
			}
			numbers, err = t.numbers(ctx, names)
		}
		if err == nil && create {
			err = t.fence(ctx, numbers)
		}
		found = inOrder(names, numbers)
		if err == nil && create && slices.Contains(found, 0) {
			err = errShort // a queue without a number would end the process
		}
		return err
	})
	return found, err
}

func inOrder(names []string, numbers map[string]int64) []int64 {
	found := make([]int64, len(names))
	for i, name := range names {
		found[i] = numbers[name]
	}
	return found
}

func (t *tx) numbers(ctx context.Context, names []string) (map[string]int64, error) {
	found := make(map[string]int64, len(names))
	for some := range slices.Chunk(names, listMost) {
		t.read(ctx, newStatement(t.sql.names, some), func(r sqlengine.Scanner) error {
			var name string
			var num int64
			err := r.Scan(&name, &num)
			found[name] = num
			return err
		})
	}
	return found, t.send(ctx)
}

// fences is the number of fence rows of a queue, by kind. Fence rows are at the end of time,
// after all others.
var fences = [...]int{sqlengine.Waiting: 16, sqlengine.Ranked: 1, sqlengine.Leased: 1, sqlengine.Dead: 1, sqlengine.Finished: 1}

// fence adds the fence rows of queues that lack them: new queues, and those for which it failed
// when they were new. InnoDB ignores the end of an empty range when it looks for the first
// row. It would walk over all deleted rows to a row outside the range. A transaction that
// leases all messages locks the fence row at which it stops, and others skip locked rows. So
// the waiting kind has more fence rows.
func (t *tx) fence(ctx context.Context, numbers map[string]int64) error {
	const each = 32 // ids a queue
	var ids []int64 // of their first rows
	for _, num := range numbers {
		ids = append(ids, -each*num)
	}
	slices.Sort(ids)
	there := make(map[int64]bool, len(ids))
	for some := range slices.Chunk(ids, listMost) {
		t.read(ctx, newStatement(t.sql.fenced, some), func(r sqlengine.Scanner) error {
			var id int64
			err := r.Scan(&id)
			there[id] = true
			return err
		})
	}
	if err := t.send(ctx); err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id int64) bool { return there[id] })
	for some := range slices.Chunk(ids, rowsMost/each) {
		s, n := newStatement(t.sql.fence), 0
		for _, id := range some {
			num := id / -each
			for kind, many := range fences {
				for range many {
					s.row(n, id, num, kind, int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(0))
					n, id = n+1, id-1
				}
			}
		}
		t.write(ctx, s)
	}
	return t.send(ctx)
}

func (s *store) Queues(ctx context.Context, after string, limit int) (queues []sqlengine.Queue, err error) {
	err = s.outside(ctx, "queues", func(t *tx) error {
		queues = nil
		t.read(ctx, newStatement(s.sql.queues, after, limit), func(r sqlengine.Scanner) error {
			q, err := sqlengine.ScanQueue(r)
			queues = append(queues, q)
			return err
		})
		return t.send(ctx)
	})
	return queues, err
}

func (s *store) IDs(ctx context.Context, blocks int) (first []engine.ID, err error) {
	n := int64(blocks * sqlengine.BlockSize)
	var to int64
	err = s.outside(ctx, "push", func(t *tx) error {
		result, err := t.querier.ExecContext(ctx, string(newStatement(s.sql.block, n).text))
		if err != nil {
			return err
		}
		if to, err = result.LastInsertId(); err == nil && to < n {
			err = errNoBlock
		}
		return err
	})
	for id := to - n + 1; id <= to; id += sqlengine.BlockSize {
		first = append(first, engine.ID(id))
	}
	return first, err
}

var errNoBlock = errors.New("the table of ids has lost its row")

func (s *store) Close() {
	if s.own {
		_ = s.db.Close() // all calls have been answered
	}
}
