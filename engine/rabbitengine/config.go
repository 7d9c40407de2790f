package rabbitengine

import (
	"cmp"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Config configures an Engine. All processes that share messages need the same Config,
// except for Nodes and Logger. A nil Config has all defaults.
type Config struct {
	// Prefix begins the names of all exchanges and queues, followed by a dot: 1 to 20 bytes
	// of a-z, 0-9, - and _. Default: DefaultPrefix.
	Prefix string

	// Unit is the granularity to which delays are rounded up. A finer unit leads messages
	// through more queues. 1 ms to 1 h, in whole milliseconds. Default: DefaultUnit.
	Unit time.Duration

	// Delays are the only allowed delays, each with one queue, instead of digits: 1 ms to
	// 365 days, in whole milliseconds; at most 64. Retries use the shortest one that is long
	// enough, or else the longest. Default: none, which allows any delay.
	Delays []time.Duration

	// Nodes are more nodes of the broker's cluster, each host:port, for connections when the
	// node of the URL does not answer. At most 64. Default: none.
	Nodes []string

	// Queues is the type of the queues. Default: Quorum on RabbitMQ 3.10 or later, else
	// Classic.
	Queues QueueType

	// Logger receives lost and restored connections, and messages that cannot be routed.
	// Default: slog.Default().
	Logger *slog.Logger

	idleAfter time.Duration // changed by tests
}

// QueueType is a type of RabbitMQ queues.
type QueueType string

// The types of queues.
const (
	// Quorum queues are replicated over the nodes of a cluster, and dead-letter at least
	// once.
	Quorum QueueType = "quorum"
	// Classic queues are durable on one node. A killed broker may lose messages that are
	// being dead-lettered.
	Classic QueueType = "classic"
)

// Defaults of Config.
const (
	DefaultPrefix = "tarry"
	DefaultUnit   = 100 * time.Millisecond
)

const (
	maxDelays = 64
	maxNodes  = 64
	maxFixed  = 365 * 24 * time.Hour
	// maxSpan is the longest delay: RabbitMQ allows no TTL over ten years.
	maxSpan = 10 * 365 * 24 * time.Hour
)

// complete returns the configuration with its defaults, or an error if it is invalid.
func (c *Config) complete() (Config, error) {
	var full Config
	if c != nil {
		full = *c
	}
	wrong := func(hint string, args ...any) (Config, error) {
		return full, engine.Invalid("open", engine.Ref{}, hint, args...)
	}
	full.Prefix = cmp.Or(full.Prefix, DefaultPrefix)
	full.Unit = cmp.Or(full.Unit, DefaultUnit)
	full.idleAfter = cmp.Or(full.idleAfter, idleAfter)
	full.Logger = cmp.Or(full.Logger, slog.Default())
	if len(full.Prefix) > 20 || strings.Trim(full.Prefix, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return wrong("the prefix is 1 to 20 bytes of a-z, 0-9, - and _")
	}
	if full.Unit < time.Millisecond || full.Unit > time.Hour || full.Unit%time.Millisecond != 0 {
		return wrong("the unit is %s; allowed is 1ms to 1h, in whole milliseconds", full.Unit)
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
		return wrong("there are %d further nodes; allowed are %d", len(full.Nodes), maxNodes)
	}
	for _, node := range full.Nodes {
		if host, port, err := net.SplitHostPort(node); err != nil || host == "" || port == "" || strings.ContainsAny(node, "/@?# ") {
			return wrong("a further node must be host:port")
		}
	}
	switch full.Queues {
	case "", Quorum, Classic:
	default:
		return wrong("queues are quorum or classic")
	}
	return full, nil
}
