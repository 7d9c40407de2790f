package diskengine

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/gate"
	"github.com/tarryhq/tarry/engine/internal/hint"
	"github.com/tarryhq/tarry/internal/leave"
)

// Engine is the engine. Open makes one.
type Engine struct {
	cfg   Config
	log   *slog.Logger
	dir   *directory
	store *store

	calls    gate.Gate
	made     leave.Calls
	watchers hint.Watchers
	closing  sync.Once
	done     chan struct{} // closed when the engine closes
	ended    chan error    // closed when all has ended; before that, at most one error
	group    sync.WaitGroup

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

	space   space
	ballast *ballast
	samples samples
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
const coalesce = 512

// lanes is how many such batches are under way at a time: one is put together while
// the other waits for its sync, and a queue that is slow holds up only what is in a
// batch with it.
const lanes = 2

var _ interface {
	engine.Whole
	engine.AtomicPusher
} = (*Engine)(nil)

// Capabilities says that the disk engine can do everything but LeaseWait.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("disk")
	c.Durable, c.Atomic, c.Prompt = true, true, true
	c.MaxPending = e.cfg.MaxPending
	c.Window = window
	c.Coalesce, c.Lanes = coalesce, lanes
	return c
}

// Watch calls fn when a message was put before the NextDue last told.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// runTail ends the syncs that nobody waits for.
func (e *Engine) runTail() {
	for a := range e.tail {
		_ = e.store.wait(a) // a failure stops the store, which all calls then say
	}
}

// Close waits for calls under way and ends the engine; a Purge, Redrive or List
// under way ends early. Leases given with Want.Remote stay valid; the others lapse
// when the directory is opened again. A disk that hangs is waited for as long as
// Config.CloseTimeout says: Close then fails with engine.ErrUnavailable and says
// what hangs, and the directory stays locked until the disk answers or the process
// ends. What fails as it ends, such as the last sync, it returns, but not what calls have
// failed with before. A second Close waits likewise, and returns nil when all has ended.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		idle := e.calls.Close()
		close(e.done)
		go e.end(idle)
	})
	timer := time.NewTimer(e.cfg.CloseTimeout)
	defer timer.Stop()
	select {
	case err := <-e.ended:
		return err // nil from the second time on
	case <-timer.C:
		return &engine.Error{Op: "close", Err: engine.ErrUnavailable,
			Hint: fmt.Sprintf("it has not ended within %s and goes on%s", e.cfg.CloseTimeout, e.slowest())}
	}
}

// end closes all once the last call has ended.
func (e *Engine) end(idle <-chan struct{}) {
	<-idle
	told := e.store.failed() // by the calls that met it
	e.made.Close()
	close(e.tail)
	e.group.Wait()
	for _, q := range e.byName {
		if q.removed > 0 && e.store.failed() == nil {
			_ = q.raiseMark() // only spares work at the next opening
		}
	}
	err := errors.Join(e.closeNames(), e.shut())
	if told == nil {
		err = errors.Join(err, e.store.failed())
	}
	if err = e.wrap("close", err); err != nil {
		e.ended <- err
	}
	close(e.ended)
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
