package mysqlengine

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// client is what InTx takes and returns: a *tarry.Client.
type client[C any] interface {
	Engine() engine.Engine
	On(engine.Engine) C
}

// InTx returns a client whose pushes, cancels, reschedules, settlements and look-ups are
// part of a transaction: others see them once it has committed, workers within Recheck of
// that, and nothing is left of them when it is rolled back, be it to a savepoint. The
// client is one that New or Open of this package is behind, and of the same database as
// the transaction. What it returns is used as the transaction is, by one goroutine at a
// time, and need not be closed.
//
// A call that fails leaves the transaction as it was before the call: it runs in a
// savepoint, called tarry. But for a deadlock the database rolls all of the transaction
// back, as the error then says. Begin it with sql.LevelReadCommitted: in a stricter one a
// call goes by settings as they were when the transaction began, and holds others up that
// push new keys. Until it ends others wait who push the same keys, or cancel the same
// messages, though not those whose calls a client gathers with theirs; workers pass over those and look again within a tenth of a second.
func InTx[C client[C]](c C, tx *sql.Tx) (C, error) {
	e, ok := c.Engine().(*Engine)
	if !ok {
		var none C
		return none, &engine.Error{Op: "begin", Err: engine.ErrUnsupported, Hint: "the client's engine is not MySQL: open it with mysql://"}
	}
	s := *e.store // as tx may be of another pool, it finds out for itself what that takes
	return c.On(e.Within(&savepoints{store: &s, tx: tx})), nil
}

// savepoints is a Store whose transactions are savepoints of one of the caller's. What is
// no matter of the transaction goes by the pool.
type savepoints struct {
	*store
	tx *sql.Tx
}

func (s *savepoints) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	t := &tx{asker: s.tx, store: s.store}
	t.waiting = append(t.waiting, say("SAVEPOINT tarry"))
	err := do(t)
	if err == nil {
		if err = t.write(ctx, say("RELEASE SAVEPOINT tarry")); err == nil {
			err = t.send(ctx)
		}
	}
	if err == nil {
		return nil
	}
	if s.several && refusesSeveral(err) { // before it did any
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
	return told(ctx, op, err, false)
}

// Names asks on the transaction's connection, unless there is one to be made.
func (s *savepoints) Names(ctx context.Context, names []string, make_ bool) ([]int64, error) {
	if make_ {
		return s.store.Names(ctx, names, true)
	}
	t := &tx{asker: s.tx, store: s.store}
	numbers, err := t.numbers(ctx, names)
	if errors.Is(err, sql.ErrTxDone) {
		return nil, &engine.Error{Op: "queue", Err: engine.ErrInvalid, Hint: "the transaction is over"}
	}
	return inOrder(names, numbers), fault(ctx, "queue", err, false)
}

// noSavepoint is the number of the error that there is no such savepoint.
const noSavepoint = 1305

// Close does nothing: the store is the engine's.
func (s *savepoints) Close() {}
