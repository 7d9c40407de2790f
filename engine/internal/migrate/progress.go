package migrate

import (
	"context"
	"log/slog"
)

// progress hears from goose what is run: its errors do not say it.
type progress struct {
	statement string // the last one that was begun
	count     int    // how many were
}

func (p *progress) begin(statement string) {
	p.statement, p.count = statement, p.count+1
}

// Enabled implements slog.Handler.
func (p *progress) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (p *progress) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "statement" {
			p.begin(a.Value.String())
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (p *progress) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup implements slog.Handler.
func (p *progress) WithGroup(string) slog.Handler { return p }
