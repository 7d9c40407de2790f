package sqlengine

import (
	"context"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Within is an engine with calls that are part of the caller's transaction: its Store runs each
// call in a savepoint. Like the transaction, it is used from one goroutine at a time. Tell
// must be called after the commit. Capabilities says what can be part of a transaction.
type Within struct {
	part
	e *Engine

	mu    sync.Mutex // Tell may be called from another goroutine
	later []func()
}

// part is the part of Engine that Within embeds.
type part interface {
	engine.Engine
	engine.AtomicPusher
}

// NewWithin returns the engine of a transaction. Like Heard it is no method.
func NewWithin(e *Engine, store Store) *Within {
	w := new(Within)
	w.e = &Engine{store, e.cfg, e.process}
	w.part = w.e
	w.e.cfg.later = func(tell func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.later = append(w.later, tell)
	}
	return w
}

// besideTimeout bounds the wait for a second connection: transactions may hold the whole pool.
const besideTimeout = 2 * time.Second

// beside runs do, which may need a second connection, apart from the caller's transaction.
func (e *Engine) beside(ctx context.Context, op string, do func(context.Context) error) error {
	if e.cfg.later == nil {
		return do(ctx)
	}
	short, cancel := context.WithTimeout(ctx, besideTimeout)
	defer cancel()
	err := do(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return &engine.Error{Op: op, Err: engine.ErrUnavailable,
			Hint: "a new queue, and sometimes new ids, need a second connection beside the transaction's, and the pool has none free: give it more"}
	}
	return err
}

// Tell sends the notices and hints of the calls, after the transaction has committed.
func (w *Within) Tell() {
	if !w.e.calls.TryEnter() {
		return
	}
	defer w.e.calls.Leave()
	w.mu.Lock()
	later := w.later
	w.later = nil
	w.mu.Unlock()
	for _, tell := range later {
		tell()
	}
}

// Capabilities returns only what can be part of a transaction: push, cancel, reschedule,
// settle and look up.
func (w *Within) Capabilities() engine.Capabilities {
	c := w.e.Capabilities()
	c.Claim, c.List, c.Count, c.Forecast, c.Pause, c.Purge, c.Redrive, c.Settings = false, false, false, false, false, false, false, false
	c.Range, c.ClaimIf, c.Peek, c.Find = false, false, false, false
	c.Prompt, c.Coalesce, c.Lanes = true, 0, 0
	return c
}

// Lease fails: leases of an open transaction could not be renewed.
func (w *Within) Lease(context.Context, []engine.Want) (engine.Grant, error) {
	return engine.Grant{}, &engine.Error{Op: "lease", Err: engine.ErrUnsupported, Hint: "lease outside of the transaction, and settle in it"}
}

// Close does nothing: the caller ends the transaction.
func (w *Within) Close() error { return nil }
