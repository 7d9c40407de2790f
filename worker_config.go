package tarry

import (
	"log/slog"
	"time"
)

// The defaults of a WorkerConfig.
const (
	DefaultConcurrency  = 100
	DefaultDrainTimeout = 30 * time.Second
)

// WorkerConfig sets up a Worker. The zero value, and a nil WorkerConfig, work.
type WorkerConfig struct {
	// Concurrency is how many messages of all queues are handled at a time, and so
	// how many are leased but unfinished. Default 100.
	Concurrency int

	// TTR is how long a lease lasts before it must be renewed, which the worker does
	// while the handler runs; so it is how long a message of a dead worker waits for
	// another. 1 ms to 24 h. Default: each message's own.
	TTR time.Duration

	// HandlerTimeout bounds a handler: its context ends then, and its lease is no
	// longer renewed. Default: none.
	HandlerTimeout time.Duration

	// DrainTimeout is how long Run lets handlers finish once its context has ended;
	// theirs end then. Default 30 s; negative: they end at once.
	DrainTimeout time.Duration

	// Middleware wraps the handlers of all queues, the first outermost.
	Middleware []Middleware

	// Observer is told what happens, for metrics and logs: one event after the other,
	// on a goroutine of its own, so that nothing that runs waits for it. No event is
	// left out; instead, while it is 4096 events behind, nothing more is leased. In the
	// end Run waits 5 s at most for it to hear the rest.
	Observer func(Event)

	// Logger gets panics of handlers, with their stack, and what goes wrong between
	// worker and engine. Nothing waits for it: see Config.Logger. Default: the client's
	// logger.
	Logger *slog.Logger
}

func (cfg *WorkerConfig) withDefaults(c *Client) WorkerConfig {
	var full WorkerConfig
	if cfg != nil {
		full = *cfg
	}
	if full.Concurrency == 0 {
		full.Concurrency = DefaultConcurrency
	}
	if full.DrainTimeout == 0 {
		full.DrainTimeout = DefaultDrainTimeout
	}
	if full.Logger == nil {
		full.Logger = c.log
	}
	full.Logger = logAside(full.Logger)
	return full
}

func (cfg *WorkerConfig) check(op string) error {
	switch {
	case cfg.Concurrency < 1:
		return invalid(op, "", "", "the concurrency is %d; at least 1 is needed", cfg.Concurrency)
	case cfg.HandlerTimeout < 0:
		return invalid(op, "", "", "the handler timeout %s is negative", cfg.HandlerTimeout)
	}
	return checkTTR(op, "", cfg.TTR)
}
