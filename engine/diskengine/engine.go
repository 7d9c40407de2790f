package diskengine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Engine is the engine. Open makes one.
type Engine struct {
	cfg   Config
	log   *slog.Logger
	dir   *directory
	store *store

	open   sync.RWMutex // held for reading by each call
	closed bool
	done   chan struct{}
	group  sync.WaitGroup

	queuesMu  sync.RWMutex
	byName    map[string]*queue
	byNumber  map[uint32]*queue
	lastQueue uint32

	idsMu       sync.Mutex
	nextID      engine.ID
	idsReserved engine.ID

	live atomic.Int64 // live messages, for MaxPending

	chunk  int // due entries read at a time
	workMu sync.Mutex
	work   []*queue
	wake   chan struct{}

	tail chan applied // local leases, whose sync nobody waits for

	space space

	watchMu  sync.RWMutex
	watchers map[int]func(string)
	watches  int
}

// clock is the instant at which a call happens.
type clock struct {
	time.Time
	ms int64
}

func (e *Engine) now() clock {
	t := e.cfg.Now()
	return clock{t, t.UnixMilli()}
}

// after is the instant d from now, in whole milliseconds.
func (c clock) after(d time.Duration) int64 { return engine.When{In: d}.Resolve(c.Time) }

// coalesce is how many single calls are welcome as one batch: entries cost less in
// one batch than in many, even when those share a sync.
const coalesce = 256

// Capabilities says that the disk engine can do everything but LeaseWait.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("disk")
	c.Durable, c.Atomic = true, true
	c.MaxPending = e.cfg.MaxPending
	c.Window = window
	c.Coalesce = coalesce
	return c
}

// enter begins a call; leave ends it.
func (e *Engine) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &engine.Error{Op: op, Err: err}
	}
	e.open.RLock()
	if e.closed {
		e.open.RUnlock()
		return &engine.Error{Op: op, Err: engine.ErrClosed}
	}
	if err := e.store.failed(); err != nil {
		e.open.RUnlock()
		return broken(op, err)
	}
	return nil
}

func (e *Engine) leave() { e.open.RUnlock() }

// do runs fn as one call: what fn answers rests on what p collects, and is
// answered when that is durable.
func (e *Engine) do(ctx context.Context, op string, fn func(now clock, p *pending) error) error {
	if err := e.enter(ctx, op); err != nil {
		return err
	}
	p := pending{store: e.store}
	err := fn(e.now(), &p)
	if werr := p.wait(); err == nil {
		err = werr
	}
	e.leave()
	e.tell(p.hints)
	return e.wrap(op, err)
}

// Watch calls fn when a message was put before the NextDue last told.
func (e *Engine) Watch(fn func(queue string)) (stop func()) {
	e.watchMu.Lock()
	defer e.watchMu.Unlock()
	e.watches++
	n := e.watches
	e.watchers[n] = fn
	return func() {
		e.watchMu.Lock()
		defer e.watchMu.Unlock()
		delete(e.watchers, n)
	}
}

func (e *Engine) tell(queues []string) {
	if len(queues) == 0 {
		return
	}
	e.watchMu.RLock()
	defer e.watchMu.RUnlock()
	for _, q := range queues {
		for _, fn := range e.watchers {
			fn(q)
		}
	}
}

// runTail ends the syncs that nobody waits for.
func (e *Engine) runTail() {
	for a := range e.tail {
		_ = e.store.sync(a.batch, a.seq) // a failure stops the store, which all calls then say
	}
}

// Close waits for calls under way and ends the engine. Leases given with
// Want.Remote stay valid; the others lapse when the directory is opened again. A
// second Close returns nil.
func (e *Engine) Close() error {
	e.open.Lock()
	defer e.open.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	close(e.done)
	close(e.tail)
	e.group.Wait()
	for _, q := range e.byName {
		if q.removed > 0 && e.store.failed() == nil {
			_ = q.raiseMark() // only spares work at the next opening
		}
	}
	return e.wrap("close", errors.Join(e.closeNames(), e.shut()))
}

// shut ends Pebble. One that has failed has nothing to say about its end, and
// finds the disk frozen.
func (e *Engine) shut() error {
	err := guard(e.store.db.Close)
	if e.store.failed() != nil {
		err = nil
	}
	return errors.Join(err, e.dir.unlock())
}
