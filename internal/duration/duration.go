// Package duration parses and formats durations for the HTTP API, the command line and
// configuration files: in Go's syntax, to which Parse adds days. It also waits for them.
package duration

import (
	"errors"
	"math"
	"strings"
	"time"
)

// The errors of Parse. They read well after the text and "is".
var (
	ErrSyntax = errors.New("not a duration")
	ErrRange  = errors.New("out of range: a duration is at most 106751d, which is 292 years")
)

// Parse accepts what time.ParseDuration does, and leading whole or fractional days:
// "1500ms", "30m", "7d", "1d12h", "-1.5d". A day is 24 hours. It fails with ErrSyntax, or
// with ErrRange for a duration that does not fit into 64 bits.
func Parse(s string) (time.Duration, error) {
	d, err := parse(s)
	if err == nil {
		return d, nil
	}
	// time.ParseDuration does not distinguish the two. A text with all its digits made 0 is
	// never out of range, so if it parses, the range was wrong. Only "0" needs no unit.
	if _, wrong := parse(strings.Map(zeroed, s)); wrong == nil && !strings.ContainsAny(s[len(s)-1:], "0123456789") {
		return 0, ErrRange
	}
	return 0, ErrSyntax
}

func zeroed(r rune) rune {
	if '0' <= r && r <= '9' {
		return '0'
	}
	return r
}

// parse is Parse with ErrSyntax for all errors.
func parse(s string) (time.Duration, error) {
	head, tail, days := strings.Cut(s, "d")
	if !days {
		if d, err := time.ParseDuration(s); err == nil {
			return d, nil
		}
		return 0, ErrSyntax
	}
	// Parse a day as an hour, so that Go's rules apply to the number.
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

// Format formats d exactly, without trailing zero units: "30m", "48h", "1h30m". It uses no
// days, so that time.ParseDuration reads it too.
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
