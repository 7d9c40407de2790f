package pgengine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// store is a schema of a database.
type store struct {
	pool   *pgxpool.Pool
	schema string
	own    bool // the pool is closed with the store
	sql    *statements

	connections sqlengine.Connections
	notices     *notices
	outcomes    outcomes
}

var _ sqlengine.Store = (*store)(nil)

func (s *store) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return fault(ctx, op, err, false)
	}
	t := s.tx(conn)
	t.write("BEGIN ISOLATION LEVEL READ COMMITTED")
	set := settings + idleTimeout
	if op == "lease" {
		set += unsynced
	}
	t.begin(conn.Conn(), set)
	committing := false
	if err = do(t); err == nil {
		err = t.err
	}
	if err == nil {
		committing = true
		t.write("COMMIT")
		err = t.send(ctx)
	}
	if err == nil {
		conn.Release()
		return nil
	}
	ended := conn.Conn().IsClosed() // with everything that was not committed
	s.rollback(conn)
	if ended && !committing && ctx.Err() == nil {
		return sqlengine.Again(fault(ctx, op, err, false))
	}
	return rolledBackError(ctx, op, err, committing)
}

// rolledBackError converts the error of a rolled back transaction into one for the engine.
func rolledBackError(ctx context.Context, op string, err error, committing bool) error {
	switch {
	case idled(err):
		return sqlengine.Again(fault(ctx, op, err, false))
	case conflicts[codeOf(err)] != nil:
		return conflicts[codeOf(err)]
	case errors.Is(err, sqlengine.ErrInternal):
		return err
	}
	return fault(ctx, op, err, committing)
}

// rollbackWithin bounds a rollback: a connection that takes longer is closed.
const rollbackWithin = time.Second

// rollback rolls back and returns the connection to the pool. If it fails, it closes the
// connection.
func (s *store) rollback(conn *pgxpool.Conn) {
	defer conn.Release()
	if conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Conn().Close(ctx)
	}
}

// settings apply to the rest of a transaction. A connection caches plans, and a plan made for
// a small table or from old statistics would read all of a large table. The plans that remain
// do not depend on the values, so a generic one suffices. Bytes in text form must be hex.
const settings = `set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('bytea_output', 'hex', true)`

// idleTimeout follows settings in the engine's own transactions. Their locks end soon after the
// client's machine has vanished. A timeout that the user has set is kept.
const idleTimeout = `, set_config('idle_in_transaction_session_timeout',
	CASE current_setting('idle_in_transaction_session_timeout') WHEN '0' THEN '10s' ELSE current_setting('idle_in_transaction_session_timeout') END, true)`

// unsynced makes a transaction commit without waiting for the disk or a standby, which would
// delay messages. A lease lost in a crash leaves its message ready. A settlement waits for
// earlier commits, too.
const unsynced = `, set_config('synchronous_commit', 'off', true)`

// planKept is how long a plan is kept. A plan made for an almost empty table may read all of
// a table or index, and get slower as it grows.
const planKept = time.Second

// planned is the key of the time when a connection last discarded its plans.
const planned = "tarry.planned"

// begin queues the first statements on a connection. They also read the time.
func (t *tx) begin(conn *pgx.Conn, settings string) {
	data, now := conn.PgConn().CustomData(), time.Now()
	if last, ok := data[planned].(time.Time); !ok || now.Sub(last) >= planKept {
		data[planned] = now
		t.write("DISCARD PLANS")
	}
	t.time(settings)
}

// saveSettings saves the values that settings changes in a caller's transaction, and restoreSettings
// restores them.
const (
	saveSettings = `SELECT set_config('tarry.seqscan', current_setting('enable_seqscan'), true), set_config('tarry.hashjoin', current_setting('enable_hashjoin'), true),
	set_config('tarry.mergejoin', current_setting('enable_mergejoin'), true), set_config('tarry.bitmapscan', current_setting('enable_bitmapscan'), true),
	set_config('tarry.jit', current_setting('jit'), true), set_config('tarry.plans', current_setting('plan_cache_mode'), true),
	set_config('tarry.bytea', current_setting('bytea_output'), true)`
	restoreSettings = `SELECT set_config('enable_seqscan', current_setting('tarry.seqscan'), true), set_config('enable_hashjoin', current_setting('tarry.hashjoin'), true),
	set_config('enable_mergejoin', current_setting('tarry.mergejoin'), true), set_config('enable_bitmapscan', current_setting('tarry.bitmapscan'), true),
	set_config('jit', current_setting('tarry.jit'), true), set_config('plan_cache_mode', current_setting('tarry.plans'), true),
	set_config('bytea_output', current_setting('tarry.bytea'), true)`
)

// lockTimeouts sets how long a transaction waits for a lock, by sqlengine.LockTimeout.
var lockTimeouts = [...]string{
	sqlengine.NoTimeout:    "",
	sqlengine.BriefTimeout: fmt.Sprintf("SELECT set_config('lock_timeout', '%d', true)", sqlengine.BriefMost.Milliseconds()),
	sqlengine.LeastTimeout: "SELECT set_config('lock_timeout', '1', true)",
}

// outside runs statements without a transaction. They may run twice.
func (s *store) outside(ctx context.Context, op string, queue func(*tx)) error {
	for n := 1; ; n++ {
		conn, err := s.acquire(ctx)
		if err != nil {
			return fault(ctx, op, err, false)
		}
		t := s.tx(conn)
		t.begin(conn.Conn(), settings)
		queue(t)
		err = t.send(ctx)
		ended := conn.Conn().IsClosed()
		conn.Release()
		if err == nil || !ended || ctx.Err() != nil || n == endedMost {
			return fault(ctx, op, err, false)
		}
	}
}

// endedMost bounds the tries on connections that have ended.
const endedMost = 20

func (s *store) Heads(ctx context.Context, from []sqlengine.LowBound) (now time.Time, heads []sqlengine.Heads, err error) {
	last := new(tx)
	err = s.outside(ctx, "lease", func(t *tx) {
		heads, last = nil, t
		t.heads(from, &heads)
	})
	return last.now, heads, err
}

func (s *store) Names(ctx context.Context, names []string, create bool) ([]int64, error) {
	numbers := make([]int64, len(names))
	return numbers, s.outside(ctx, "queue", func(t *tx) {
		if create {
			nums := make([]int64, len(names))
			for i := range nums {
				nums[i] = sqlengine.NewNumber()
			}
			t.write(t.sql.makeNames, nums, names)
		}
		t.names(names, numbers)
	})
}

// names queues the query for the numbers of queues.
func (t *tx) names(names []string, numbers []int64) {
	t.read(t.sql.names, func(r sqlengine.Scanner) error {
		var name string
		var num int64
		err := r.Scan(&name, &num)
		for i := range names {
			if names[i] == name {
				numbers[i] = num
			}
		}
		return err
	}, names)
}

func (s *store) Queues(ctx context.Context, after string, limit int) (queues []sqlengine.Queue, err error) {
	err = s.outside(ctx, "queues", func(t *tx) {
		queues = nil
		t.read(t.sql.queues, func(r sqlengine.Scanner) error {
			q, err := sqlengine.ScanQueue(r)
			queues = append(queues, q)
			return err
		}, after, limit)
	})
	return queues, err
}

func (s *store) IDs(ctx context.Context, blocks int) ([]engine.ID, error) {
	return s.reserve(ctx, s.pool, blocks)
}

// reserve reserves ids on a connection or in a transaction. A rollback does not undo that.
func (s *store) reserve(ctx context.Context, by sender, blocks int) (first []engine.ID, err error) {
	t := s.tx(by)
	t.read(t.sql.block, func(r sqlengine.Scanner) error {
		var block int64
		err := r.Scan(&block)
		first = append(first, engine.ID((block-1)*sqlengine.BlockSize+1))
		return err
	}, blocks)
	return first, fault(ctx, "push", t.send(ctx), false)
}

// foldMost is how many tallies one statement adds up.
const foldMost = 250

func (s *store) Fold(ctx context.Context, from int64) (last int64, more bool, err error) {
	var gone int64
	var queues, minutes []int64
	var counts []int16
	err = s.outside(ctx, "tally", func(t *tx) {
		queues, counts, minutes = nil, nil, nil
		t.read(t.sql.fold, func(r sqlengine.Scanner) error {
			var queue, minute *int64
			var count *int16
			if err := r.Scan(&gone, &last, &queue, &count, &minute); err != nil || queue == nil {
				return err
			}
			queues, counts, minutes = append(queues, *queue), append(counts, *count), append(minutes, *minute)
			return nil
		}, foldMost, from)
	})
	if err == nil && queues != nil {
		err = s.outside(ctx, "tally", func(t *tx) { t.write(t.sql.unfold, queues, counts, minutes) })
	}
	return last, gone == foldMost, err
}

func (s *store) Close() {
	s.notices.close()
	s.outcomes.tasks.Wait()
	if s.own {
		s.pool.Close()
	}
}
