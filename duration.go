package tarry

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// ParseDuration accepts what time.ParseDuration does, and leading whole or fractional days:
// "1500ms", "30m", "7d", "1d12h", "-1.5d". A day is 24 hours. It fails with ErrInvalid.
func ParseDuration(s string) (time.Duration, error) {
	d, err := duration.Parse(s)
	switch {
	case errors.Is(err, duration.ErrRange):
		return 0, engine.Invalid("parse duration", Ref{}, "%q is %v", engine.Clip(s), err)
	case err != nil:
		return 0, engine.Invalid("parse duration", Ref{}, `%q is not a duration; examples are "1500ms", "30m", "48h" and "7d"`, engine.Clip(s))
	}
	return d, nil
}

// FormatDuration formats d exactly, without trailing zero units: "30m", "48h", "1h30m". It
// uses no days, so that time.ParseDuration reads it too.
func FormatDuration(d time.Duration) string { return duration.Format(d) }
