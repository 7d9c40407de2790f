package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/wire"
)

// durationValue is a flag for a duration such as 1500ms, 30m, 48h or 7d.
type durationValue time.Duration

func (d *durationValue) String() string { return orNothing(time.Duration(*d)) }
func (d *durationValue) Type() string   { return "duration" }

func (d *durationValue) Set(s string) error {
	v, err := duration.Parse(s)
	switch {
	case errors.Is(err, duration.ErrRange):
		return fmt.Errorf("%q is %w", s, err)
	case err != nil:
		return fmt.Errorf("%q is not a duration such as 1500ms, 30m, 48h or 7d", s)
	}
	if v < 0 {
		return fmt.Errorf("the duration %s is negative", s)
	}
	*d = durationValue(v)
	return nil
}

// durationsValue is a flag for several durations, separated by commas.
type durationsValue []time.Duration

func (ds *durationsValue) String() string { return durationsText(*ds) }
func (ds *durationsValue) Type() string   { return "durations" }

func (ds *durationsValue) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		var d durationValue
		if err := d.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		*ds = append(*ds, time.Duration(d))
	}
	return nil
}

func durationsText(all []time.Duration) string {
	var s []string
	for _, d := range all {
		s = append(s, tarry.FormatDuration(d))
	}
	return strings.Join(s, ",")
}

// timeValue is a flag for an RFC 3339 time.
type timeValue time.Time

func (t *timeValue) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return formatTime(time.Time(*t))
}
func (t *timeValue) Type() string { return "time" }

func (t *timeValue) Set(s string) error {
	v, err := parseTime(s)
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2030-01-02T15:04:05Z or 2030-01-02T15:04:05+01:00", s)
	}
	*t = timeValue(v)
	return nil
}

func parseTime(s string) (time.Time, error) {
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		// A space instead of the T is RFC 3339 too.
		v, err = time.Parse("2006-01-02 15:04:05.999999999Z07:00", s)
	}
	return v, err
}

// boundValue is a flag for an RFC 3339 time or a duration from now, with its sign.
type boundValue struct {
	*time.Time
	now  func() time.Time
	bare time.Duration // a duration without a sign means: 1 from now, -1 ago, 0 is refused
}

func (b boundValue) String() string {
	if b.Time == nil {
		return ""
	}
	return formatTime(*b.Time)
}

// Type describes the value in help.
func (b boundValue) Type() string {
	if b.bare != 0 {
		return "time|duration"
	}
	return "time|±duration"
}

func (b boundValue) Set(s string) error {
	direction := b.bare
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		direction = 1
	}
	d, wrong := duration.Parse(s)
	if wrong == nil && direction != 0 {
		*b.Time = b.now().Add(direction * d)
		return nil
	}
	t, err := parseTime(s)
	switch {
	case err == nil:
		*b.Time = t
		return nil
	case errors.Is(wrong, duration.ErrRange):
		return fmt.Errorf("%q is %w", s, wrong)
	case b.bare != 0:
		return fmt.Errorf("%q is neither a time such as 2030-01-02T15:04:05Z nor a duration such as 2h", s)
	}
	return fmt.Errorf("%q is neither a time such as 2030-01-02T15:04:05Z nor a duration from now such as -2h or +30m", s)
}

// boundFlags are --from and --to.
type boundFlags struct{ from, to time.Time }

func (b *boundFlags) add(p *Program, cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(boundValue{&b.from, p.Now, 0}, "from", "none before this time, such as 2030-01-02T15:04:05Z, -2h or +30m")
	f.Var(boundValue{&b.to, p.Now, 0}, "to", "none at or behind this time")
}

// dueFlags are --in and --at.
type dueFlags struct {
	in time.Duration
	at time.Time
}

func (d *dueFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var((*durationValue)(&d.in), "in", "due after this delay, such as 30m or 7d")
	cmd.Flags().Var((*timeValue)(&d.at), "at", "due at this time, such as 2030-01-02T15:04:05Z")
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
