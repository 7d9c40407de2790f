package wire

import (
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// Duration is a time.Duration that encoding/json writes and reads as the API does.
type Duration time.Duration

// D returns d as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// MarshalText writes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(duration.Format(d.D())), nil }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	got, err := duration.Parse(string(text))
	*d = Duration(got)
	return err
}

// Time is a time.Time that encoding/json writes and reads as the API does.
type Time struct{ time.Time }

// MarshalJSON writes the time, or null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) { return AppendTime(nil, t.Time), nil }
