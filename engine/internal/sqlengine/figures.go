package sqlengine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// causes are why transactions that can run again were undone.
var causes = [...]struct {
	label string
	err   error
}{
	{"locked", ErrBusy}, {"deadlock", ErrDeadlock}, {"connection", errEnded}, {"queue", errMustLock},
	{"conflict", ErrAgain}, // of any other kind: others took a key
}

// measured counts the transactions of a process.
type measured struct {
	transactions figure.Times
	undone       [len(causes)]atomic.Int64
	failures     atomic.Int64
}

// observe counts a transaction that began at start and ended with err.
func (m *measured) observe(start time.Time, err error) {
	m.transactions.Since(start)
	if err == nil {
		return
	}
	for i := range causes {
		if errors.Is(err, causes[i].err) {
			m.undone[i].Add(1)
			return
		}
	}
	if errors.Is(err, engine.ErrUnavailable) {
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
	by := make([]figure.By, len(causes))
	for i := range by {
		by[i] = figure.By{Label: causes[i].label, Value: float64(m.undone[i].Load())}
	}
	l.TotalBy("undone", "Transactions that were rolled back, most of them to run again: by a deadlock or a serialization failure, since others took a key first, since others held a lock for too long, by the end of the connection, or to lock a queue.", "cause", by...)
	l.Total("failures", "Transactions that failed because the database was not available.", float64(m.failures.Load()))
	e.store.Measure(l)
	return l.All()
}
