package redisengine

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Config configures an Engine. The zero Config suits most programs.
type Config struct {
	// Prefix begins the names of all keys and channels of the store, so that several stores
	// and other programs can share a Redis. "" is "tarry". At most 100 bytes, without braces
	// and spaces.
	Prefix string

	// Shards is the number of shards of each queue, 1 to MaxShards. 0 keeps the number of an
	// existing store. For a new store 0 is DefaultShards, or DefaultClusterShards in a
	// cluster. The number is fixed when the store is made: opening it with another fails.
	Shards int

	// AtMostOnce deletes a message when it is taken instead of leasing it. No message is
	// handled twice, but messages held by a worker that dies are lost. Ack does nothing;
	// retry, snooze, release and bury fail with ErrLeaseLost.
	AtMostOnce bool

	// Pace is the least time between two leases of a process. A shorter one delivers sooner and
	// costs more: see engine.Tuning. 0: DefaultPace; less: none. At most engine.MaxPace.
	Pace time.Duration

	// History is how long finished messages are listed in queues whose settings do not say.
	// The zero History lists none: each takes memory of the Redis.
	History engine.History

	// Logger receives failures that have no caller, such as a refused subscription to hints.
	// nil is slog.Default.
	Logger *slog.Logger

	// Replicas is the number of replicas that must confirm a push, settlement, cancel,
	// reschedule or redrive before the call returns, 0 to 100. With 0, the call returns as
	// soon as the server has written it. If too few replicas confirm within a second, the
	// engine asks again for three seconds. Then the call fails with ErrUnavailable although
	// it was carried out. Each such call costs one more round trip.
	Replicas int

	// Evict accepts a Redis that may evict keys, and messages with them, when its memory is
	// full. By default such a Redis is refused.
	Evict bool
}

// The number of shards of each queue of a new store. A single server runs one script at a
// time, so more shards only cost more scripts. A cluster spreads shards over its masters.
// docs/engines/redis.md has the measurements.
const (
	DefaultShards        = 1
	DefaultClusterShards = 4
)

// DefaultPace keeps the 99th percentile of lateness below 8 ms.
const DefaultPace = 5 * time.Millisecond

const (
	defaultPrefix = "tarry"
	maxPrefix     = 100
)

func (c *Config) prefix() (string, error) {
	switch {
	case c.Prefix == "":
		return defaultPrefix, nil
	case len(c.Prefix) > maxPrefix || strings.ContainsAny(c.Prefix, "{} \t\r\n"):
		return "", &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf("a prefix has at most %d bytes, without braces and spaces", maxPrefix)}
	}
	return c.Prefix, nil
}

func (c *Config) check() error {
	if c.Shards < 0 || c.Shards > MaxShards {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf("a queue has 1 to %d shards", MaxShards)}
	}
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf("replicas are 0 to %d", maxReplicas)}
	}
	return c.History.Validate()
}

const maxReplicas = 100
