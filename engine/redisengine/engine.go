package redisengine

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/gate"
	"github.com/tarryhq/tarry/engine/internal/hint"
)

// Recheck is how long an answer may be relied on while nothing is heard: hints may be
// lost. An engine that waits on n shards so makes n calls in this time.
const Recheck = 5 * time.Second

// Engine is an engine on Redis. Make one with New or Open; its methods may be called
// from many goroutines, and many engines, in many processes, may share a store.
type Engine struct {
	client   rueidis.Client
	log      *slog.Logger
	conns    *connections // of a client that is closed with the engine; nil: it is the program's own
	prefix   string
	shards   int
	forget   bool // Config.AtMostOnce
	replicas int  // Config.Replicas
	origin   string
	channel  string
	clock    clock
	stopped  func() time.Time // a test's clock; nil: the servers'
	patience time.Duration    // shardPatience, or what a test says
	ids      ids
	registry *registry
	held     held
	spread   atomic.Uint32 // deals shards out to messages without a key
	asked    atomic.Uint64 // numbers the calls whose answers are kept
	measured measured

	calls    gate.Gate
	closing  sync.Once
	watchers hint.Watchers
	opened   time.Time
	shaky    atomic.Bool // the last round trip failed

	probing atomic.Bool // somebody asks after dark shards

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	// mu guards what follows.
	mu      sync.RWMutex
	queues  map[string]*queue
	printed map[fingerprint]*queue
	heard   bool // the subscription has been started

	// hears is whether the subscription stands. Without it nothing that is known of a
	// shard can be relied on.
	hears atomic.Bool
}

var _ engine.Whole = (*Engine)(nil)

// New returns an engine on a client, which stays the caller's to close, after the
// engine. It asks the servers whether they will do, and makes or checks the
// description of the store; a nil cfg is the zero Config.
//
// The client must not send a command again whose answer was lost: rueidis does so
// only for commands that read, which is what the engine counts on. Client-side
// caching is not used.
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
		client: client, log: cfg.logger(), prefix: prefix, forget: cfg.AtMostOnce, replicas: cfg.Replicas,
		opened: time.Now(), origin: rand.Text(), channel: prefix + ":hints",
		ids:      ids{used: blockSize},
		patience: shardPatience,
		registry: newRegistry(prefix),
		held:     held{leases: make(map[string]lease)},
		queues:   make(map[string]*queue),
		printed:  make(map[fingerprint]*queue),
	}
	if err := e.examine(ctx, cfg.Evict); err != nil {
		return nil, err
	}
	if e.shards, err = e.describe(ctx, cfg.Shards); err != nil {
		return nil, err
	}
	if err := e.mayPublish(ctx); err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Capabilities says what the engine can do: everything but atomic pushes over shards.
// The order of ready messages is exact within what one call sees of each shard.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Full("redis")
	c.Durable = true
	c.Shares = e.shards > 1
	c.Coalesce, c.Lanes = coalesce, lanes
	c.Recheck = Recheck
	c.MaxBody = maxBody
	c.Window = window
	return c
}

const (
	coalesce = 512
	lanes    = 2
	maxBody  = 64 << 20 // Redis takes 512 MiB in one value, and holds up others for it
	window   = 1 << 20
)

// Shards is how many shards each queue of this store has.
func (e *Engine) Shards() int { return e.shards }

// Close waits for the calls under way, gives back the leases that this engine took for
// its own process, and ends the client if the engine made it. A second Close does
// nothing and returns nil.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		<-e.calls.Close()
		e.giveBack()
		e.cancel()
		e.tasks.Wait()
		if e.conns != nil {
			e.client.Close()
		}
	})
	return nil
}

func (e *Engine) cluster() bool { return e.client.Mode() == rueidis.ClientModeCluster }
