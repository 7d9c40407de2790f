package pgengine

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// client is the type that InTx takes and returns: *tarry.Client.
type client[C any] interface {
	Engine() engine.Engine
	On(engine.Engine) C
}

// InTx returns a client for use in a transaction: its pushes, cancels, reschedules, settlements
// and look-ups are part of it. Others see them after the commit, and workers are woken. A
// rollback undoes them, and so does one to a savepoint. The client needs an engine of this
// package on the transaction's database. Like the transaction, the returned client is used by
// one goroutine at a time. It need not be closed.
//
// Each call runs in a savepoint: one that fails leaves the transaction unchanged. The
// transaction should be READ COMMITTED: in a stricter one, a call that conflicts with others
// fails with ErrUnavailable. Until the transaction ends, others that push the same keys or
// cancel the same messages wait, except in calls that a client gathers. Workers pass over
// these messages and look again within a tenth of a second.
func InTx[C client[C]](c C, tx pgx.Tx) (C, error) {
	e, ok := c.Engine().(*Engine)
	if !ok {
		var none C
		return none, &engine.Error{Op: "begin", Err: engine.ErrUnsupported, Hint: "the client's engine is not PostgreSQL: open it with postgres://"}
	}
	s := &savepoints{store: e.store, tx: tx}
	s.within = sqlengine.NewWithin(e.Engine, s)
	return c.On(s.within), nil
}

// savepoints is a Store with savepoints of the caller's transaction as its transactions. The
// rest uses the pool.
type savepoints struct {
	*store
	tx      pgx.Tx
	within  *sqlengine.Within
	watched bool // outcomes waits for the transaction to end
}

func (s *savepoints) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	sp, err := s.tx.Begin(ctx)
	if err != nil {
		return outer(ctx, op, err)
	}
	t := s.store.tx(sp)
	t.write(saveSettings)
	t.begin(s.tx.Conn(), settings)
	if err = do(t); err == nil {
		t.write(restoreSettings)
		err = t.send(ctx)
	}
	if err == nil {
		if err = sp.Commit(ctx); err == nil {
			return outer(ctx, op, s.watch(ctx))
		}
	}
	if undo := sp.Rollback(ctx); undo != nil && !errors.Is(undo, pgx.ErrTxClosed) {
		return outer(ctx, op, err)
	}
	return rolledBackError(ctx, op, err, false)
}

// outer is fault for the caller's transaction.
func outer(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrTxClosed) {
		return &engine.Error{Op: op, Err: engine.ErrInvalid, Hint: "the transaction is over"}
	}
	return fault(ctx, op, err, false)
}

// Names uses the transaction's connection, unless it may have to create queues.
func (s *savepoints) Names(ctx context.Context, names []string, create bool) ([]int64, error) {
	if create {
		return s.store.Names(ctx, names, true)
	}
	numbers := make([]int64, len(names))
	t := s.store.tx(s.tx)
	t.names(names, numbers)
	return numbers, outer(ctx, "queue", t.send(ctx))
}

// IDs uses the transaction's connection, because transactions may hold the whole pool.
func (s *savepoints) IDs(ctx context.Context, blocks int) ([]engine.ID, error) {
	return s.reserve(ctx, s.tx, blocks)
}

// Close does nothing: the store belongs to the engine.
func (s *savepoints) Close() {}

// watch makes outcomes send the notices after the transaction commits.
func (s *savepoints) watch(ctx context.Context) error {
	if s.watched {
		return nil
	}
	var xid string
	if err := s.tx.QueryRow(ctx, "SELECT pg_current_xact_id()::text").Scan(&xid); err != nil {
		return err
	}
	s.watched = true
	s.store.outcomes.add(xid, s.within)
	return nil
}

// How often outcomes asks whether transactions have ended. Messages that they push may be
// late by as much.
const (
	askLeast = 2 * time.Millisecond
	askMost  = 100 * time.Millisecond
)
