// Package memengine stores messages in this process's memory. It is the engine for tests
// and for messages that may be lost with the process. It is also the one to read first:
// every rule of package engine is here in its shortest form.
//
// A queue (queue.go) is a set of messages (message.go) with indexes. Alarms (alarms.go) hold
// scheduled messages by due time, leased ones by deadline, and expiring ones by expiry. Ready
// messages are in a heap by (priority, due, id) (turns.go). All messages are indexed by id
// and by key (index.go), and each state by the minute in which it ends, for lists and
// forecasts (minutes.go). Parts that few queues need are separate: settings and their limits
// (settings.go), remembered keys (finished.go), and the history of finished messages
// (history.go).
//
// Millions of messages may wait, so they are stored in a slab (slab.go), and indexes refer
// to them by place, a number of four bytes. A pending message with a key of 20 bytes and a
// body of 200 takes under 400 bytes, a remembered key of that length under 200. The garbage
// collector follows only the data of each. Everything that leaves the engine is copied
// (answer.go).
//
// Nothing runs in the background: no goroutines, timers or package state. Each call locks
// its queue and brings it up to the present before its own small step. queue.advance makes
// due messages ready, makes messages with lapsed leases ready or dead, and drops expired
// messages and some of those kept long enough. So the engine works inside testing/synctest
// as it does outside, and a test may supply the clock.
package memengine

import (
	"context"
	"hash/maphash"
	"math"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/names"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { engine.Register("mem", open) }

// open opens the URL "mem:", with MaxPending as the option max_pending, and History as history
// and history_max.
func open(_ context.Context, u *url.URL) (engine.Engine, error) {
	r, cfg := storeurl.New(u), new(Config)
	r.Bare("mem:")
	r.Int("max_pending", &cfg.MaxPending)
	r.History(&cfg.History)
	if err := r.Done(); err != nil {
		return nil, err
	}
	return New(cfg), nil
}

// Config configures an Engine. The zero value suits most uses.
type Config struct {
	// Now is the engine's clock; nil: time.Now. It must be safe for concurrent use and must
	// not call the engine.
	Now func() time.Time

	// MaxPending bounds the live messages of all queues together; a push beyond it gets
	// engine.ErrLimit. 0: no limit. Messages that are redriven, or revived by a late
	// settlement, count too but are never refused.
	MaxPending int64

	// History is the default for queues without settings of their own.
	History engine.History
}

// Engine is an engine in memory. Make one with New. It is safe for concurrent use.
type Engine struct {
	now        func() time.Time
	maxPending int64
	history    engine.History
	pending    atomic.Int64  // live messages
	lastID     atomic.Uint64 // last message id
	seed       maphash.Seed  // for hashes of keys

	calls    calls.Gate
	watchers calls.Watchers

	// mu guards the fields below. It is never taken while a queue's lock is held.
	mu        sync.RWMutex
	queues    map[string]*queue
	names     names.Set // names of queues
	numbered  []*queue  // queues by the lower half of queue.number
	free      []uint32  // unused indexes in numbered
	lastQueue uint64    // upper half of the last number
	tidyAt    int       // number of queues at which empty ones are next removed
}

var _ interface {
	engine.Whole
	engine.AtomicPusher
} = (*Engine)(nil)

// New returns an empty engine; a nil cfg is the zero Config.
func New(cfg *Config) *Engine {
	if cfg == nil {
		cfg = &Config{}
	}
	e := &Engine{
		now:        cfg.Now,
		maxPending: cfg.MaxPending,
		history:    cfg.History,
		seed:       maphash.MakeSeed(),
		queues:     make(map[string]*queue),
		tidyAt:     tidyLeast,
	}
	if e.now == nil {
		e.now = time.Now
	}
	return e
}

// Capabilities reports that this engine can do everything but survive the process, and that
// its order of ready messages is always exact.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("mem")
	c.Atomic, c.Prompt = true, true
	c.MaxPending = e.maxPending
	c.Window = math.MaxInt
	return c
}

// Close waits for the calls under way and drops all messages. A second Close returns nil.
func (e *Engine) Close() error {
	<-e.calls.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queues, e.names, e.numbered, e.free = nil, names.Set{}, nil, nil
	return nil
}

// admit counts n more live messages; false: there is no room.
func (e *Engine) admit(n int64) bool {
	if total := e.pending.Add(n); e.maxPending > 0 && n > 0 && total > e.maxPending {
		e.pending.Add(-n)
		return false
	}
	return true
}
