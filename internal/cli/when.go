package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/storeurl"
	"github.com/tarryhq/tarry/internal/wire"
)

// flagOf is the value of a flag that is parsed and formatted by functions.
type flagOf[T any] struct {
	to     *T
	kind   string // shown in help
	parse  func(string) (T, error)
	format func(T) string
}

func (f flagOf[T]) String() string { return f.format(*f.to) }
func (f flagOf[T]) Type() string   { return f.kind }

func (f flagOf[T]) Set(s string) error {
	v, err := f.parse(s)
	if err == nil {
		*f.to = v
	}
	return err
}

// durationFlag is a flag for a duration such as 1500ms, 30m, 48h or 7d.
func durationFlag(d *time.Duration) pflag.Value {
	return flagOf[time.Duration]{d, "duration", parseDuration, orNothing}
}

func parseDuration(s string) (time.Duration, error) {
	d, err := duration.Parse(s)
	switch {
	case errors.Is(err, duration.ErrRange):
		return 0, fmt.Errorf("%q is %w", s, err)
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 1500ms, 30m, 48h or 7d", s)
	case d < 0:
		return 0, fmt.Errorf("the duration %s is negative", s)
	}
	return d, nil
}

// durationsFlag is a flag for several durations, separated by commas. It may be repeated.
func durationsFlag(all *[]time.Duration) pflag.Value {
	return flagOf[[]time.Duration]{all, "durations", func(s string) ([]time.Duration, error) {
		more := *all
		for part := range strings.SplitSeq(s, ",") {
			d, err := parseDuration(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			more = append(more, d)
		}
		return more, nil
	}, durationsText}
}

func durationsText(all []time.Duration) string {
	var s []string
	for _, d := range all {
		s = append(s, tarry.FormatDuration(d))
	}
	return strings.Join(s, ",")
}

// timeFlag is a flag for an RFC 3339 time.
func timeFlag(t *time.Time) pflag.Value {
	return flagOf[time.Time]{t, "time", func(s string) (time.Time, error) {
		v, err := parseTime(s)
		if err != nil {
			return v, fmt.Errorf("%q is not a time such as 2030-01-02T15:04:05Z or 2030-01-02T15:04:05+01:00", s)
		}
		return v, nil
	}, formatTime}
}

func parseTime(s string) (time.Time, error) {
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		// A space instead of the T is RFC 3339 too.
		v, err = time.Parse("2006-01-02 15:04:05.999999999Z07:00", s)
	}
	return v, err
}

// boundFlag is a flag for an RFC 3339 time or a duration from now, with its sign. A duration
// without a sign means: bare 1 from now, bare -1 ago; bare 0 refuses it.
func boundFlag(t *time.Time, now func() time.Time, bare time.Duration) pflag.Value {
	kind, example := "time|duration", "neither a time such as 2030-01-02T15:04:05Z nor a duration such as 2h"
	if bare == 0 {
		kind, example = "time|±duration", "neither a time such as 2030-01-02T15:04:05Z nor a duration from now such as -2h or +30m"
	}
	return flagOf[time.Time]{t, kind, func(s string) (time.Time, error) {
		direction := bare
		if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
			direction = 1
		}
		d, wrong := duration.Parse(s)
		if wrong == nil && direction != 0 {
			return now().Add(direction * d), nil
		}
		v, err := parseTime(s)
		switch {
		case err == nil:
			return v, nil
		case errors.Is(wrong, duration.ErrRange):
			return v, fmt.Errorf("%q is %w", s, wrong)
		}
		return v, fmt.Errorf("%q is %s", s, example)
	}, formatTime}
}

// sizeFlag is a flag for a number of bytes, with or without a unit.
func sizeFlag(n *int64) pflag.Value {
	return flagOf[int64]{n, "size", func(s string) (int64, error) {
		v, err := storeurl.ParseBytes(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a size such as 65536, 64KiB, 256M or 2GiB", s)
		}
		return v, nil
	}, func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// dueFlags are --in and --at.
type dueFlags struct {
	in time.Duration
	at time.Time
}

func (d *dueFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(durationFlag(&d.in), "in", "due after this delay, such as 30m or 7d")
	cmd.Flags().Var(timeFlag(&d.at), "at", "due at this time, such as 2030-01-02T15:04:05Z")
	cmd.Flags().Lookup("in").Annotations = map[string][]string{flagAliases: {"delay", "after"}}
	cmd.Flags().Lookup("at").Annotations = map[string][]string{flagAliases: {"due", "when"}}
}

// due returns the due time of the flags. Without either it is now, or an error if need is set.
func (d *dueFlags) due(cmd *cobra.Command, need bool) (tarry.Due, error) {
	in, at := cmd.Flags().Changed("in"), cmd.Flags().Changed("at")
	switch {
	case in && at:
		return tarry.Due{}, usagef("give one of them", "both --in and --at are given")
	case at:
		return tarry.At(d.at), nil
	case !in && need:
		return tarry.Due{}, usagef("as in --in 30m or --at 2030-01-02T15:04:05Z", "no new due time is given")
	}
	return tarry.In(d.in), nil
}

// formatTime formats an instant as the HTTP API does; "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(wire.TimeFormat)
}

// away says how far t is from now, for people: "in 29m59s", "3s ago", "now".
func away(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := t.Sub(now)
	past := d < 0
	d = d.Abs()
	switch {
	case d == math.MaxInt64 && !past:
		return "in more than 292 years" // the longest duration
	case d >= 48*time.Hour:
		d = d.Round(time.Hour)
	case d >= time.Second:
		d = d.Round(time.Second)
	case d < 100*time.Millisecond:
		return "now"
	default:
		d = d.Round(10 * time.Millisecond)
	}
	if past {
		return tarry.FormatDuration(d) + " ago"
	}
	return "in " + tarry.FormatDuration(d)
}
