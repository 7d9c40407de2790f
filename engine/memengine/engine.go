// Package memengine keeps messages in this process's memory. It is the engine
// for tests, for what may be lost with the process, and the one to read first:
// every rule of package engine is here in its shortest form.
//
// A queue (queue.go) is a set of messages (message.go) and the few orders in
// which it must find them: whatever waits for time behind alarms (alarms.go:
// the scheduled by due, the leased by deadline, what expires by expiry), the ready
// ones in a heap by (priority, due, id) (turns.go), all of them by id and by key
// (index.go), and each state by the minute in which it ends, for lists and
// forecasts (minutes.go). What few queues have is apart: settings, with what they hold
// back or drop (settings.go), and the keys that messages left behind (finished.go).
//
// Millions of messages may wait, so they lie in a slab (slab.go) and the orders
// name them by their places, numbers of four bytes: a pending message with a key
// of 20 bytes and a body of 200 takes under 400 bytes, such a key that is remembered
// under 200, and all that the collector finds in either is its data. What leaves the
// engine is copied (answer.go).
//
// Nothing runs by itself: no goroutine, no timer, no state of the package. Each
// call takes its queue's lock, brings the queue up to the present (queue.advance:
// what has come due is ready, what has outlived its deadline is ready again or
// dead, what has expired is gone, and some of what was kept long enough), and then
// does its own small step. So the engine lives inside testing/synctest as it does
// outside, and a test may give it a clock of its own.
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
	"github.com/tarryhq/tarry/engine/internal/gate"
	"github.com/tarryhq/tarry/engine/internal/hint"
	"github.com/tarryhq/tarry/engine/internal/names"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { engine.Register("mem", open) }

// open opens the URL "mem:", with MaxPending as the option max_pending.
func open(_ context.Context, u *url.URL) (engine.Engine, error) {
	r, cfg := storeurl.New(u), new(Config)
	r.Bare("mem:")
	r.Int("max_pending", &cfg.MaxPending)
	if err := r.Done(); err != nil {
		return nil, err
	}
	return New(cfg), nil
}

// Config sets an Engine up. The zero Config is what most want.
type Config struct {
	// Now is the engine's clock; nil: time.Now. It may be called from many
	// goroutines and must not call the engine.
	Now func() time.Time

	// MaxPending bounds the live messages of all queues together; a push beyond
	// it gets engine.ErrLimit. 0: no bound. What is redriven or revived by a late
	// settlement counts too, but is never refused.
	MaxPending int64
}

// Engine is an engine in memory. Make one with New; its methods may be called
// from many goroutines.
type Engine struct {
	now        func() time.Time
	maxPending int64
	pending    atomic.Int64  // live messages
	lastID     atomic.Uint64 // of messages
	seed       maphash.Seed  // of the hashes of keys

	calls    gate.Gate
	watchers hint.Watchers

	// mu guards what follows. It is never taken while a queue's lock is held.
	mu        sync.RWMutex
	queues    map[string]*queue
	names     names.Set // of the same
	numbered  []*queue  // the same, each at the lower half of queue.number
	free      []uint32  // where there is none
	lastQueue uint64    // the upper half of the number given last
	tidyAt    int       // how many queues there are when the empty ones are next forgotten
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
		seed:       maphash.MakeSeed(),
		queues:     make(map[string]*queue),
		tidyAt:     tidyLeast,
	}
	if e.now == nil {
		e.now = time.Now
	}
	return e
}

// Capabilities says that this engine can do everything but keep messages over
// the end of the process, and that its order of ready messages is always exact.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("mem")
	c.Atomic, c.Prompt = true, true
	c.MaxPending = e.maxPending
	c.Window = math.MaxInt
	return c
}

// Close waits for the calls under way and forgets all messages. A second Close
// does nothing and returns nil.
func (e *Engine) Close() error {
	<-e.calls.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queues, e.names, e.numbered, e.free = nil, names.Set{}, nil, nil
	return nil
}

func (e *Engine) begin(ctx context.Context, op string) error { return e.calls.Enter(ctx, op) }
func (e *Engine) end()                                       { e.calls.Leave() }

// admit makes room for n more live messages; false: there is none.
func (e *Engine) admit(n int64) bool {
	if total := e.pending.Add(n); e.maxPending > 0 && n > 0 && total > e.maxPending {
		e.pending.Add(-n)
		return false
	}
	return true
}
