package sqlengine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Config configures an Engine.
type Config struct {
	Name    string         // as in Capabilities
	Recheck time.Duration  // as in Tuning: a push by another process is seen within it even without a notice
	MaxBody int            // as in Limits
	History engine.History // the default for queues without settings of their own
	Pace    time.Duration  // as in Tuning
	// Now replaces the database's clock; nil: that clock is used.
	Now func() time.Time
	// Notify tells other processes that queues may have something sooner, and when. It does
	// not wait, and may lose notices. nil: there are no notices.
	Notify func([]Sooner)

	later func(tell func()) // defers the notices of a commit; nil: they are sent at once
}

// Engine is an engine on a Store. It is safe for concurrent use. Many engines in many
// processes may share a database.
type Engine struct {
	store Store
	cfg   Config
	*process
}

// process is what this process knows about a store.
type process struct {
	calls      calls.Gate
	closing    sync.Once
	watchers   calls.Watchers
	names      names
	ids        ids
	cache      cache
	wholeLooks atomic.Bool // a background task makes whole looks
	trims      atomic.Bool // a background task trims histories
	held       calls.Held[struct{}]
	folding    folding
	measured   measured

	untilClose context.Context
	stop       context.CancelFunc
	tasks      sync.WaitGroup // in the background
}

var _ interface {
	engine.Whole
	engine.AtomicPusher
} = (*Engine)(nil)

// New returns an engine on a store, and takes over closing the store.
func New(store Store, cfg Config) *Engine {
	p := new(process)
	p.untilClose, p.stop = context.WithCancel(context.Background())
	p.cache.queues = make(map[int64]*cached)
	p.names.numbers = make(map[string]int64)
	return &Engine{store, cfg, p}
}

// Capabilities reports that the engine can do everything.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full(e.cfg.Name)
	c.Durable, c.Atomic = true, true
	c.Coalesce, c.Lanes, c.Recheck, c.Pace = coalesce, lanes, e.cfg.Recheck, e.cfg.Pace
	c.MaxBody = e.cfg.MaxBody
	c.Window = window
	return c
}

const (
	coalesce = 512
	lanes    = 2
	window   = 65_536 // how many ready messages of different priorities of one queue are in exact order
)

// Pace is the engines' default: the 99th percentile of lateness is below 10 ms, with slow commits 15.
const Pace = 8 * time.Millisecond

// Watch calls fn with queues that may have something sooner than an answer said.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// Heard handles a notice of another process about a queue. It is no method because Engine is
// embedded in types that programs see.
func Heard(e *Engine, s Sooner) {
	if !e.calls.TryEnter() {
		return
	}
	defer e.calls.Leave()
	if num := e.names.of([]string{s.Queue})[0]; num != 0 {
		low := highest(num)
		low.From[Waiting].At, low.From[Ranked].At = s.At, s.At
		e.cache.one(num, func(k *cached) { k.lower(&low) })
	}
	e.watchers.Hint(s.Queue)
}

// Close waits for running calls, releases the leases that this engine took for its own
// process, and closes the store. A second Close does nothing and returns nil.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		<-e.calls.Close()
		e.stop()
		e.held.GiveBack(func(ctx context.Context, back []engine.Settlement) ([]engine.Settled, error) {
			return e.settle(ctx, back, NoTimeout)
		})
		e.tasks.Wait()
		e.store.Close()
	})
	return nil
}

// clock replaces the database's time by a test's clock.
func (e *Engine) clock(database time.Time) time.Time {
	if e.cfg.Now != nil {
		return e.cfg.Now()
	}
	return database
}
