package mysqlengine

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// client is the type that InTx takes and returns: *tarry.Client.
type client[C any] interface {
	Engine() engine.Engine
	On(engine.Engine) C
}

// InTx returns a client for use in a transaction: its pushes, cancels, reschedules, settlements
// and look-ups are part of it. Others see them after the commit, and workers within Recheck. A
// rollback undoes them, and so does one to a savepoint. The client needs an engine of this
// package on the transaction's database. Like the transaction, the returned client is used by
// one goroutine at a time. It need not be closed.
//
// Each call runs in a savepoint named tarry: one that fails leaves the transaction unchanged.
// After a deadlock, however, the database rolls back the whole transaction, and the error
// says so. Begin the transaction with sql.LevelReadCommitted: in a stricter one, calls use
// old settings, and delay others that push new keys. Until the transaction ends, others that
// push the same keys or cancel the same messages wait, except in calls that a client combines.
// Workers pass over these messages and look again within a tenth of a second.
func InTx[C client[C]](c C, tx *sql.Tx) (C, error) {
	e, ok := c.Engine().(*Engine)
	if !ok {
		var none C
		return none, &engine.Error{Op: "begin", Err: engine.ErrUnsupported, Hint: "the client's engine is not MySQL: open it with mysql://"}
	}
	s := *e.store // a copy: tx may belong to a pool with other settings
	return c.On(sqlengine.NewWithin(e.Engine, &savepoints{store: &s, tx: tx})), nil
}

// savepoints is a Store with savepoints of the caller's transaction as its transactions. The
// rest uses the pool.
type savepoints struct {
	*store
	tx *sql.Tx
}

func (s *savepoints) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	t := &tx{querier: s.tx, store: s.store}
	t.waiting = append(t.waiting, newStatement("SAVEPOINT tarry"))
	err := do(t)
	if err == nil {
		t.write(ctx, newStatement("RELEASE SAVEPOINT tarry"))
		err = t.send(ctx)
	}
	if err == nil {
		return nil
	}
	if s.several && refusesSeveral(err) { // none has run
		s.several = false
		return sqlengine.ErrAgain
	}
	if errors.Is(err, sql.ErrTxDone) {
		return &engine.Error{Op: op, Err: engine.ErrInvalid, Hint: "the transaction is over"}
	}
	if _, undo := s.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT tarry"); undo != nil {
		if numberOf(undo) == noSavepoint {
			return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: "the database rolled the whole transaction back: run it again; it says: " + err.Error()}
		}
		return fault(ctx, op, err, false)
	}
	return rolledBackError(ctx, op, err, false)
}

// Names uses the transaction's connection, unless it may have to create queues.
func (s *savepoints) Names(ctx context.Context, names []string, create bool) ([]int64, error) {
	if create {
		return s.store.Names(ctx, names, true)
	}
	t := &tx{querier: s.tx, store: s.store}
	numbers, err := t.numbers(ctx, names)
	if errors.Is(err, sql.ErrTxDone) {
		return nil, &engine.Error{Op: "queue", Err: engine.ErrInvalid, Hint: "the transaction is over"}
	}
	return inOrder(names, numbers), fault(ctx, "queue", err, false)
}

// noSavepoint is the error number for an unknown savepoint.
const noSavepoint = 1305

// Close does nothing: the store belongs to the engine.
func (s *savepoints) Close() {}
