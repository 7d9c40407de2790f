package tarry

import (
	"log/slog"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
)

// Config sets up a Client. The zero value, and a nil Config, work.
type Config struct {
	// MaxBody bounds the body of a pushed message, in bytes. Default 1 MiB, or the server's
	// limit for a remote engine. The engine's own limit applies as well.
	MaxBody int

	// MaxWaitQueues bounds the queue names of all waiting leases together, and so the
	// memory that waiting takes: about 300 bytes and the name for each. A queue counts once
	// for each lease that names it. A Leaser counts as long as it is open. Workers do not
	// count. A lease over the limit fails with ErrLimit, unless it names at most 16 queues.
	// Default 250,000.
	MaxWaitQueues int

	// PushMiddleware wraps the calls that push, the first outermost. For handlers see
	// WorkerConfig.Middleware. Default: none.
	PushMiddleware []PushMiddleware

	// Logger gets what no caller sees: failed engine calls in the background, panics of
	// handlers. A goroutine of its own writes to it. While 1000 lines wait for a slow
	// logger, further lines are dropped and counted. Default: slog.Default at the time the
	// client is made.
	Logger *slog.Logger

	// Meter receives what the client does, for metrics; see package tarryprom. Default:
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
	return notify.Logger(l)
}

// maxBody returns the largest body for an engine. The default for a remote engine is the
// server's limit.
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

// within returns the smaller of a limit and the engine's own, where 0 means that the engine
// has none.
func within(limit, engines int) int {
	if engines > 0 {
		return min(limit, engines)
	}
	return limit
}
