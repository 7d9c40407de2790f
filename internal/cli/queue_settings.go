package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
)

// queueSetting is one setting of a queue.
type queueSetting struct {
	name   string // of its flag
	means  string
	shared bool                           // a store with several shards divides it among them
	show   func(s *tarry.Settings) string // "" when unset
	take   func(to, from *tarry.Settings)
}

// setting makes a queueSetting from a field.
func setting[T any](name, means string, shared bool, field func(*tarry.Settings) *T, show func(T) string) queueSetting {
	return queueSetting{
		name: name, means: means, shared: shared,
		show: func(s *tarry.Settings) string { return show(*field(s)) },
		take: func(to, from *tarry.Settings) { *field(to) = *field(from) },
	}
}

var queueSettings = []queueSetting{
	setting("priority", "of messages whose push says none; lower goes first", false,
		func(s *tarry.Settings) **uint32 { return &s.Defaults.Priority }, pointedText),
	setting("max-attempts", "attempts, then a message is dead, unless its push says otherwise", false,
		func(s *tarry.Settings) *uint32 { return &s.Defaults.MaxAttempts }, countText),
	setting("backoff", "rest after each failed attempt, unless its push says otherwise", false,
		func(s *tarry.Settings) *[]time.Duration { return &s.Defaults.Backoff }, durationsText),
	setting("ttr", "a worker may hold a message, unless its push says otherwise", false,
		func(s *tarry.Settings) *time.Duration { return &s.Defaults.TTR }, orNothing),
	setting("expire-after", "after its due time a message that nobody got is dropped, unless its push says otherwise", false,
		func(s *tarry.Settings) *time.Duration { return &s.Defaults.ExpireAfter }, orNever),
	setting("remember", "the key stays known when a message has gone, unless its push says otherwise", false,
		func(s *tarry.Settings) *time.Duration { return &s.Defaults.Remember }, orNever),
	setting("isolate", "whether a message that lapsed twice is leased alone, unless its push says otherwise", false,
		func(s *tarry.Settings) **bool { return &s.Defaults.Isolate }, pointedText),
	setting("dead-keep", "after their death dead messages are dropped", false,
		func(s *tarry.Settings) *time.Duration { return &s.DeadKeep }, orNothing),
	setting("dead-max", "dead messages stay at most; the longest dead are dropped", true,
		func(s *tarry.Settings) *int64 { return &s.DeadMax }, countText),
	setting("history", "finished messages stay listed after their end", false,
		func(s *tarry.Settings) *time.Duration { return &s.History }, orNever),
	setting("history-max", "finished messages stay listed at most; those that ended first are dropped", true,
		func(s *tarry.Settings) *int64 { return &s.HistoryMax }, countText),
	setting("max-pending", "live messages at most; a push that would make more is refused", true,
		func(s *tarry.Settings) *int64 { return &s.MaxPending }, countText),
	setting("in-flight", "messages at most are held by workers at once", true,
		func(s *tarry.Settings) *int64 { return &s.InFlight }, countText),
	setting("rate", "messages at most are handed out a second", true,
		func(s *tarry.Settings) *float64 { return &s.Rate }, rateText),
	setting("burst", "messages at most are handed out at once", true,
		func(s *tarry.Settings) *int64 { return &s.Burst }, countText),
}

func settingNames() string {
	var names []string
	for _, q := range queueSettings {
		names = append(names, q.name)
	}
	return strings.Join(names, ", ")
}

// countText formats a count; "" for 0.
func countText[N int64 | uint32](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// rateText formats a rate; "" for 0.
func rateText(rate float64) string {
	if rate == 0 {
		return ""
	}
	return strconv.FormatFloat(rate, 'f', -1, 64)
}

// pointedText formats the value of a pointer; "" for nil.
func pointedText[T any](p *T) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(*p)
}

// orNothing formats a duration; "" for 0.
func orNothing(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return tarry.FormatDuration(d)
}

// orNever formats a duration that may be tarry.Never; "" for 0.
func orNever(d time.Duration) string {
	if d == tarry.Never {
		return "never"
	}
	return orNothing(d)
}
