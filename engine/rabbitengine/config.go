package rabbitengine

import (
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Config sets an engine up; all processes that share messages need the same but for Nodes and Logger.
// nil stands for all defaults.
type Config struct {
	// Prefix is what the names of all exchanges and queues begin with, followed by a dot:
	// 1 to 20 bytes of a-z, 0-9, - and _. Default: DefaultPrefix.
	Prefix string

	// Unit is what delays are rounded up to: the finer, the more queues a message passes
	// through. 1 ms to 1 h, in whole milliseconds. Default: DefaultUnit.
	Unit time.Duration

	// Levels is how many binary digits a delay has: the longest is 2^Levels - 1 units. 1 to
	// 40. Default: as many as reach for a year and a half at least.
	Levels int

	// Delays are the only delays there are, each with one queue, in place of digits: 1 ms
	// to 365 days, in whole milliseconds; at most 64. Retries wait for the least of them that
	// is long enough, or else the longest. Default: none, any delay.
	Delays []time.Duration

	// Nodes are further nodes of the broker's cluster, host:port each, to which connections go
	// when the one of the URL does not answer. At most 64. Default: none.
	Nodes []string

	// Queues is of which type the queues are. Default: Quorum if the broker is RabbitMQ 3.10
	// or later, Classic before.
	Queues QueueType

	// Logger is told of connections lost and found, and of what cannot be routed. Default:
	// slog.Default().
	Logger *slog.Logger

	idleAfter time.Duration // the constant, but in tests
}

// QueueType is a type of queues of RabbitMQ.
type QueueType string

// The types of queues.
const (
	// Quorum queues are replicated over the nodes of a cluster, and dead-letter at least
	// once.
	Quorum QueueType = "quorum"
	// Classic queues are durable on one node. When the broker is killed it may lose
	// messages that are being dead-lettered.
	Classic QueueType = "classic"
)

// Defaults of Config.
const (
	DefaultPrefix = "tarry"
	DefaultUnit   = 100 * time.Millisecond
)

const (
	maxLevels = 40
	maxDelays = 64
	maxNodes  = 64
	maxFixed  = 365 * 24 * time.Hour
	// reach is how long a delay can be at least by default.
	reach = 548 * 24 * time.Hour
)

// complete returns the configuration with its defaults, or says what is wrong with it.
func (c *Config) complete() (Config, error) {
	var full Config
	if c != nil {
		full = *c
	}
	wrong := func(hint string, args ...any) (Config, error) {
		return full, engine.Invalid("open", engine.Ref{}, hint, args...)
	}
	if full.Prefix == "" {
		full.Prefix = DefaultPrefix
	}
	if len(full.Prefix) > 20 || strings.Trim(full.Prefix, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return wrong("the prefix is 1 to 20 bytes of a-z, 0-9, - and _")
	}
	if full.Unit == 0 {
		full.Unit = DefaultUnit
	}
	if full.Unit < time.Millisecond || full.Unit > time.Hour || full.Unit%time.Millisecond != 0 {
		return wrong("the unit is %s; allowed is 1ms to 1h, in whole milliseconds", full.Unit)
	}
	if full.Levels == 0 {
		for full.Levels = 1; full.Unit<<full.Levels < reach; full.Levels++ {
		}
	}
	if full.Levels < 1 || full.Levels > maxLevels || full.Unit > maxSpan>>full.Levels {
		return wrong("there are %d levels; allowed are 1 to %d, and a delay of 10 years", full.Levels, maxLevels)
	}
	full.Delays = slices.Clone(full.Delays)
	slices.Sort(full.Delays)
	if len(full.Delays) > maxDelays || len(slices.Compact(slices.Clone(full.Delays))) < len(full.Delays) {
		return wrong("there are %d delays; allowed are %d, each once", len(full.Delays), maxDelays)
	}
	for _, d := range full.Delays {
		if d < time.Millisecond || d > maxFixed || d%time.Millisecond != 0 {
			return wrong("the delay %s is not 1ms to %s, in whole milliseconds", d, maxFixed)
		}
	}
	if len(full.Nodes) > maxNodes {
		return wrong("there are %d nodes besides; allowed are %d", len(full.Nodes), maxNodes)
	}
	for _, node := range full.Nodes {
		if host, port, err := net.SplitHostPort(node); err != nil || host == "" || port == "" || strings.ContainsAny(node, "/@?# ") {
			return wrong("a further node is host:port")
		}
	}
	switch full.Queues {
	case "", Quorum, Classic:
	default:
		return wrong("queues are quorum or classic")
	}
	if full.idleAfter == 0 {
		full.idleAfter = idleAfter
	}
	if full.Logger == nil {
		full.Logger = slog.Default()
	}
	return full, nil
}

// maxSpan is how long delays are at most: RabbitMQ has no TTL of more than ten years.
const maxSpan = 10 * 365 * 24 * time.Hour
