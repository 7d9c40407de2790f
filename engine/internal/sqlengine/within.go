package sqlengine

import (
	"context"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Within is an engine whose calls are part of a transaction of the caller's: its Store runs
// each in a savepoint of that. It is used as the transaction is, from one goroutine at a
// time, and Tell is called when that has committed.
type Within struct {
	e *Engine

	mu    sync.Mutex // Tell is not called from the transaction's goroutine
	later []func()
}

var _ interface {
	engine.Engine
	engine.AtomicPusher
} = (*Within)(nil)

// Within returns the engine of a transaction.
func (e *Engine) Within(store Store) *Within {
	w := new(Within)
	w.e = &Engine{store, e.cfg, e.process}
	w.e.cfg.later = func(tell func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.later = append(w.later, tell)
	}
	return w
}

// besideWithin is how long a call in a transaction waits for another connection of a pool, of
// which transactions may hold all.
const besideWithin = 2 * time.Second

// beside runs what may need another connection beside that of a transaction of a caller's.
func (e *Engine) beside(ctx context.Context, op string, do func(context.Context) error) error {
	if e.cfg.later == nil {
		return do(ctx)
	}
	short, cancel := context.WithTimeout(ctx, besideWithin)
	defer cancel()
	err := do(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return &engine.Error{Op: op, Err: engine.ErrUnavailable,
			Hint: "a new queue, and now and then new ids, need a connection of the pool besides that of the transaction, and none is free: give the pool more"}
	}
	return err
}

// Tell tells what there is to tell, once the transaction has committed.
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

// Capabilities says that the engine can do what is part of a transaction: push, cancel,
// reschedule, settle and look up.
func (w *Within) Capabilities() engine.Capabilities {
	c := w.e.Capabilities()
	c.Claim, c.List, c.Count, c.Forecast, c.Pause, c.Purge, c.Redrive, c.Settings = false, false, false, false, false, false, false, false
	c.Range = false
	c.Prompt, c.Coalesce, c.Lanes = true, 0, 0
	return c
}

// Push is Engine.Push in the transaction.
func (w *Within) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return w.e.Push(ctx, msgs)
}

// PushAtomic is Engine.PushAtomic in the transaction, which goes on when it fails.
func (w *Within) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return w.e.PushAtomic(ctx, msgs)
}

// Lease fails: what a transaction leased nobody could renew.
func (w *Within) Lease(context.Context, []engine.Want) (engine.Grant, error) {
	return engine.Grant{}, &engine.Error{Op: "lease", Err: engine.ErrUnsupported, Hint: "lease outside of the transaction, and settle in it"}
}

// Settle is Engine.Settle in the transaction.
func (w *Within) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	return w.e.Settle(ctx, s)
}

// Cancel is Engine.Cancel in the transaction.
func (w *Within) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	return w.e.Cancel(ctx, refs)
}

// Reschedule is Engine.Reschedule in the transaction.
func (w *Within) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	return w.e.Reschedule(ctx, ref, due)
}

// Get is Engine.Get as the transaction sees it.
func (w *Within) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return w.e.Get(ctx, ref)
}

// Watch is that of the engine whose transaction it is.
func (w *Within) Watch(fn func(queue string)) (stop func()) { return w.e.Watch(fn) }

// Close does nothing: the transaction is the caller's to end.
func (w *Within) Close() error { return nil }
