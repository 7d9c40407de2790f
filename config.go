package tarry

import (
	"io"
	"log/slog"
)

// Config sets up a Client. The zero value, and a nil Config, work.
type Config struct {
	// MaxBody bounds the body of a pushed message, in bytes. Default 1 MiB; the
	// engine's own limit counts as well.
	MaxBody int

	// Logger gets what no caller can be told: engine calls that fail in the
	// background. Default: nothing is logged.
	Logger *slog.Logger
}

func (cfg *Config) logger() *slog.Logger {
	if cfg != nil && cfg.Logger != nil {
		return cfg.Logger
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func (cfg *Config) maxBody(engineLimit int) int {
	n := DefaultMaxBody
	if cfg != nil && cfg.MaxBody > 0 {
		n = cfg.MaxBody
	}
	if engineLimit > 0 {
		n = min(n, engineLimit)
	}
	return n
}
