package redisengine

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/internal/calls"
)

// Recheck is how long an answer is trusted without news: hints may be lost. An engine that
// waits on n shards makes n calls in this time.
const Recheck = 5 * time.Second

// Engine is an engine on Redis, made by New or Open. It is safe for concurrent use, and many
// engines in many processes may share a store.
type Engine struct {
	client   rueidis.Client
	log      *slog.Logger
	conns    *connections // of a client that the engine made; nil: the program's own
	prefix   string
	shards   int
	forget   bool // Config.AtMostOnce
	replicas int  // Config.Replicas
	pace     time.Duration
	origin   string
	channel  string
	common   string // the channel and the store's history, as scripts read them
	clock    clock
	stopped  func() time.Time // clock of a test; nil: the servers'
	slack    time.Duration    // added to timeouts by a test in which nothing may time out
	ids      ids
	registry *registry
	held     calls.Held[taken]
	spread   atomic.Uint32 // selects shards for messages without a key
	asked    atomic.Uint64 // numbers calls with stored answers
	measured measured

	calls    calls.Gate
	closing  sync.Once
	watchers calls.Watchers
	opened   time.Time
	shaky    atomic.Bool // the last round trip failed

	probing atomic.Bool // a probe is running

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	// mu guards the fields below.
	mu      sync.RWMutex
	queues  map[string]*queue
	printed map[fingerprint]*queue
	heard   bool // the subscription has been started

	// hears is whether the subscription is active. Without it, cached knowledge of shards is
	// not used.
	hears atomic.Bool
}

var _ engine.Whole = (*Engine)(nil)

// New returns an engine on a client. The caller closes the client, after the engine. New
// checks that the servers are suitable, and creates or checks the description of the store.
// A nil cfg is the zero Config.
//
// When an answer was lost, the client must not repeat the command, except one that only reads:
// this is what rueidis does. Client-side caching is not used.
func New(ctx context.Context, client rueidis.Client, cfg *Config) (*Engine, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	prefix, err := cfg.prefix()
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	e := &Engine{
		client: client, log: cmp.Or(cfg.Logger, slog.Default()), prefix: prefix, forget: cfg.AtMostOnce, replicas: cfg.Replicas,
		pace:   rules.Pace(cfg.Pace, DefaultPace),
		opened: time.Now(), origin: rand.Text(), channel: prefix + ":hints",
		ids:      newIDs(),
		registry: newRegistry(prefix),
		queues:   make(map[string]*queue),
		printed:  make(map[fingerprint]*queue),
	}
	if err := e.examine(ctx, cfg.Evict); err != nil {
		return nil, err
	}
	if e.shards, err = e.describe(ctx, cfg.Shards); err != nil {
		return nil, err
	}
	h := cfg.History.Of(nil)
	e.common = fmt.Sprintf("%s %d %d", e.channel, ceil(max(0, h.Keep), time.Millisecond), shareOf(h.Max, e.shards))
	if err := e.mayPublish(ctx); err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Capabilities lists what the engine can do: all but atomic pushes over several shards.
// Ready messages are ordered exactly within what one call sees of each shard.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("redis")
	c.Durable = true
	c.Shares = e.shards > 1
	c.Coalesce, c.Lanes = coalesce, lanes
	c.Recheck, c.Pace = Recheck, e.pace
	c.MaxBody = maxBody
	c.Window = window
	return c
}

const (
	coalesce = 512
	lanes    = 2
	maxBody  = 64 << 20 // Redis allows 512 MiB, but a large value blocks other clients
	window   = 1 << 20
)

// Shards returns the number of shards of each queue of this store.
func (e *Engine) Shards() int { return e.shards }

// Close waits for calls in progress, releases the leases that this engine took for its own
// process, and closes the client if the engine made it. A second Close does nothing and
// returns nil.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		<-e.calls.Close()
		if !e.forget {
			e.held.GiveBack(e.settle)
		}
		e.cancel()
		e.tasks.Wait()
		if e.conns != nil {
			e.client.Close()
		}
	})
	return nil
}

func (e *Engine) cluster() bool { return e.client.Mode() == rueidis.ClientModeCluster }
