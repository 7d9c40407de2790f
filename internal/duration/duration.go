// Package duration writes and reads durations as the HTTP API, the command line and
// configurations have them: as Go does, and with days.
package duration

import (
	"errors"
	"math"
	"strings"
	"time"
)

// ErrSyntax is what Parse returns for a text that is no duration.
var ErrSyntax = errors.New("not a duration")

// Parse reads what time.ParseDuration does, and whole or fractional days in front:
// "1500ms", "30m", "7d", "1d12h", "-1.5d". A day is 24 hours. It fails with ErrSyntax.
func Parse(s string) (time.Duration, error) {
	head, tail, days := strings.Cut(s, "d")
	if !days {
		if d, err := time.ParseDuration(s); err == nil {
			return d, nil
		}
		return 0, ErrSyntax
	}
	// A day is read as an hour, so that Go's own rules hold for the number.
	d, err := time.ParseDuration(head + "h")
	if err != nil || strings.ContainsAny(head, "hmsnuµμ") || d > math.MaxInt64/24 || d < math.MinInt64/24 {
		return 0, ErrSyntax
	}
	d *= 24
	if tail == "" {
		return d, nil
	}
	rest, err := time.ParseDuration(tail)
	if err != nil || tail[0] == '-' || tail[0] == '+' {
		return 0, ErrSyntax
	}
	if strings.HasPrefix(head, "-") {
		if d < math.MinInt64+rest {
			return 0, ErrSyntax
		}
		return d - rest, nil
	}
	if d > math.MaxInt64-rest {
		return 0, ErrSyntax
	}
	return d + rest, nil
}

// Format writes d exactly and without the zero units at its end: "30m", "48h",
// "1h30m". It writes no days, so that time.ParseDuration reads it too.
func Format(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
