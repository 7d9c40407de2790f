package sqlengine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// Measurer is a Store with figures of its own.
type Measurer interface {
	// Measure adds its figures to those of the engine.
	Measure(l *figure.List)
}

// measured counts the transactions of a process.
type measured struct {
	transactions figure.Times
	undone       [undoings]atomic.Int64
	failures     atomic.Int64
}

// undoing is why a transaction that can run again was undone.
type undoing int

const (
	byDeadlock undoing = iota
	byConflict         // others took a key
	byLocks            // others held a lock for too long
	byEnd              // the connection ended
	byQueue            // a queue must be locked first
	undoings
)

var undoingNames = [undoings]string{"deadlock", "conflict", "locked", "connection", "queue"}

// observe counts a transaction that began at start and ended with err.
func (m *measured) observe(start time.Time, err error) {
	m.transactions.Since(start)
	if err == nil {
		return
	}
	_, ended := errors.AsType[*again](err)
	switch {
	case errors.Is(err, ErrBusy):
		m.undone[byLocks].Add(1)
	case errors.Is(err, ErrDeadlock):
		m.undone[byDeadlock].Add(1)
	case ended:
		m.undone[byEnd].Add(1)
	case err == errMustLock:
		m.undone[byQueue].Add(1)
	case errors.Is(err, ErrAgain):
		m.undone[byConflict].Add(1)
	case errors.Is(err, engine.ErrUnavailable):
		m.failures.Add(1)
	}
}

// in is Store.In, measured.
func (e *Engine) in(ctx context.Context, op string, do func(Tx) error) error {
	start := time.Now()
	err := e.store.In(ctx, op, do)
	e.measured.observe(start, err)
	return err
}

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer.
func (e *Engine) Figures() []engine.Figure {
	l, m := figure.Of(e.cfg.Name), &e.measured
	l.Times("transaction_seconds", "How long transactions took, with the wait for a connection.", &m.transactions)
	by := make([]figure.By, undoings)
	for why := range by {
		by[why] = figure.By{Label: undoingNames[why], Value: float64(m.undone[why].Load())}
	}
	l.TotalBy("undone", "Transactions that were rolled back, most of them to run again: by a deadlock or a serialization failure, since others took a key first, since others held a lock for too long, by the end of the connection, or to lock a queue.", "cause", by...)
	l.Total("failures", "Transactions that failed because the database was not available.", float64(m.failures.Load()))
	if s, ok := e.store.(Measurer); ok {
		s.Measure(l)
	}
	return l.All()
}
