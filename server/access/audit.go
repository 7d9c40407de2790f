package access

import (
	"io"
	"log/slog"
)

// NewAudit returns a logger that writes a line of JSON for each change, without level
// and message: the time, what was done, by whom, from where, and with what result.
func NewAudit(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}}))
}
