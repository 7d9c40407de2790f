package redisengine

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// Config sets an Engine up. The zero Config is what most want.
type Config struct {
	// Prefix begins the names of all keys and channels of the store, so that several
	// stores, and other programs, can share a Redis. "" is "tarry". At most 100 bytes,
	// without braces and spaces.
	Prefix string

	// Shards is how many shards each queue of a new store has, 1 to MaxShards. 0 is
	// DefaultShards for a new store, DefaultClusterShards in a cluster, and for an old
	// one what that has. A store keeps the number that it was made with: opening it
	// with another fails.
	Shards int

	// AtMostOnce deletes messages as they are taken instead of leasing them: what a
	// worker holds when it dies is lost, and nothing is ever handled twice. Ack does
	// nothing then, and a retry, snooze, release or bury fails with ErrLeaseLost.
	AtMostOnce bool

	// Logger gets what no caller can be told, such as a subscription to hints that Redis
	// refuses; nil: slog.Default.
	Logger *slog.Logger

	// Replicas is how many replicas must have what a push, settlement, cancel,
	// reschedule or redrive has written before it is answered, 0 to 100; 0: none, the
	// answer comes as soon as the server has it. What does not reach so many within a
	// second is asked for again for three, and then fails with ErrUnavailable though it
	// was carried out. Each such call costs a round trip to the replicas.
	Replicas int

	// Evict accepts a Redis that may evict keys when its memory is full, and with
	// them messages. Such a Redis is else refused.
	Evict bool
}

// How many shards each queue of a new store has unless Config says otherwise. A single
// server runs one script at a time, so that more shards only cost it more scripts; a
// cluster spreads them over its masters. docs/engines/redis.md has the measurements.
const (
	DefaultShards        = 1
	DefaultClusterShards = 4
)

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

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}

func (c *Config) check() error {
	if c.Shards < 0 || c.Shards > MaxShards {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf("a queue has 1 to %d shards", MaxShards)}
	}
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf("replicas are 0 to %d", maxReplicas)}
	}
	return nil
}

const maxReplicas = 100
