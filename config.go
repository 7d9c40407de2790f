package tarry

import (
	"log/slog"

	"github.com/tarryhq/tarry/engine"
)

// Config sets up a Client. The zero value, and a nil Config, work.
type Config struct {
	// MaxBody bounds the body of a pushed message, in bytes. Default 1 MiB, or what the
	// server of a remote engine allows; the engine's own limit counts as well.
	MaxBody int

	// MaxWaitQueues bounds the queues that all leases which wait name together, each
	// counted as often as it is named; so it bounds the memory that waiting takes, some
	// 300 bytes and the name for each. A Leaser counts as long as it is open. One that
	// would exceed it fails with ErrLimit, unless it names at most 16. Workers do not count.
	// Default 250,000.
	MaxWaitQueues int

	// PushMiddleware wraps the calls that push, the first outermost; see PushMiddleware
	// and, for handlers, WorkerConfig.Middleware. Default: none.
	PushMiddleware []PushMiddleware

	// Logger gets what no caller can be told: engine calls that fail in the
	// background, panics of handlers. It is written to from a goroutine of its own; of
	// a log that is slow, what comes while 1000 lines wait is dropped and counted.
	// Default: what slog.Default is when the client is made.
	Logger *slog.Logger

	// Meter is told what the client does, for metrics; see package tarryprom. Default:
	// none.
	Meter *Meter
}

func (cfg *Config) meter() *Meter {
	if cfg == nil {
		return nil
	}
	return cfg.Meter
}

func (cfg *Config) logger() *slog.Logger {
	l := slog.Default()
	if cfg != nil && cfg.Logger != nil {
		l = cfg.Logger
	}
	return logAside(l)
}

// maxBody is the largest body for an engine. A remote one's limit is what the server was
// set up for: it is the default.
func (cfg *Config) maxBody(caps engine.Capabilities) int {
	n := DefaultMaxBody
	if cfg != nil && cfg.MaxBody > 0 {
		n = cfg.MaxBody
	} else if caps.LeaseWait && caps.MaxBody > 0 {
		n = caps.MaxBody
	}
	return within(n, caps.MaxBody)
}

func (cfg *Config) maxWaitQueues() int {
	if cfg != nil && cfg.MaxWaitQueues > 0 {
		return cfg.MaxWaitQueues
	}
	return DefaultMaxWaitQueues
}

// within is a limit, or an engine's own where that is less; 0: it has none.
func within(limit, engines int) int {
	if engines > 0 {
		return min(limit, engines)
	}
	return limit
}
