package diskengine

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/names"
)

// Engine keeps messages in a directory. Open makes one.
type Engine struct {
	cfg   Config
	store *store.Store
	lock  io.Closer

	calls    calls.Gate
	made     calls.Leaver
	watchers calls.Watchers
	closing  sync.Once
	closed   chan struct{} // when all has ended; then closeErr is set
	closeErr error

	copying    sync.Mutex // one backup at a time
	forgotIdle time.Time  // when forgetIdle last looked; the flusher's

	leaseTurn atomic.Uint64 // how often a Lease got all the bytes that it may have

	nums sync.Map // the numbers of queues, by name: a copy of names that is read without the lock

	// The store's lock guards what follows, and all queues.
	leases      *memtable.Leases
	queues      map[string]*queue
	names       names.Set // of the same
	numbered    map[uint32]*queue
	live        int64 // messages of all queues
	readyMemory int64 // bytes of memory of ready heaps
	fresh       freshness
	unlisted    bool // a finished message was not listed, as space is short

	nextID    engine.ID
	nextQueue uint32
}

var _ interface {
	engine.Whole
	engine.AtomicPusher
	engine.Backuper
} = (*Engine)(nil)

// coalesce is how many single calls are best made as one, and lanes how many such calls may
// run at a time. One call of many items takes the lock once, while the other calls wait for
// their syncs.
const (
	coalesce = 256
	lanes    = 4
)

// Capabilities says that this engine can do everything but LeaseWait.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("disk")
	c.Durable, c.Atomic, c.Prompt = true, true, true
	c.MaxPending = e.cfg.MaxPending
	c.MaxBody = e.maxBody()
	c.Window = e.cfg.tune.ready
	c.Coalesce, c.Lanes = coalesce, lanes
	return c
}

// Watch calls fn when a queue may have something to lease sooner than the last answer said.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// Close waits for calls under way and ends the engine. Its background work is cut short.
// Leases given with Want.Remote stay valid; the others have lapsed when the directory is
// opened again. If something fails at the end, such as the last sync, Close fails.
//
// Close waits for a disk that does not answer no longer than Config.CloseTimeout. It then
// fails with engine.ErrUnavailable and says what hangs; the directory stays locked until the
// disk answers or the process ends. A second Close waits likewise, and returns the same once
// all has ended.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		idle := e.calls.Close()
		stopped := e.store.Failed() != nil // and all callers were told
		e.store.End()
		go func() {
			<-idle
			e.closeErr = e.shut(stopped)
			close(e.closed)
		}()
	})
	late := time.NewTimer(e.cfg.CloseTimeout)
	defer late.Stop()
	select {
	case <-e.closed:
		return e.closeErr
	case <-late.C:
		hint := fmt.Sprintf("the store in %s has not ended within %s and goes on", e.store.Dir, e.cfg.CloseTimeout)
		if hangs := e.store.Disk.Hangs(min(e.cfg.CloseTimeout, time.Second)); hangs != "" {
			hint += "; " + hangs
		}
		return &engine.Error{Op: "close", Err: engine.ErrUnavailable, Hint: hint}
	}
}
