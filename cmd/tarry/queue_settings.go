package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
)

// queueSetting is one of the settings of a queue.
type queueSetting struct {
	name   string // of its flag
	means  string
	shared bool                           // a store of several shards divides it
	show   func(s *tarry.Settings) string // "" when unset
	take   func(to, from *tarry.Settings)
}

var queueSettings = []queueSetting{
	{
		name: "priority", means: "of messages whose push says none; lower goes first",
		show: func(s *tarry.Settings) string {
			if s.Defaults.Priority == nil {
				return ""
			}
			return fmt.Sprint(*s.Defaults.Priority)
		},
		take: func(to, from *tarry.Settings) { to.Defaults.Priority = from.Defaults.Priority },
	},
	{
		name: "max-attempts", means: "attempts, then a message is dead, unless its push says otherwise",
		show: func(s *tarry.Settings) string { return countText(int64(s.Defaults.MaxAttempts)) },
		take: func(to, from *tarry.Settings) { to.Defaults.MaxAttempts = from.Defaults.MaxAttempts },
	},
	{
		name: "backoff", means: "rest after each failed attempt, unless its push says otherwise",
		show: func(s *tarry.Settings) string { return (*durationsValue)(&s.Defaults.Backoff).String() },
		take: func(to, from *tarry.Settings) { to.Defaults.Backoff = from.Defaults.Backoff },
	},
	{
		name: "ttr", means: "a worker may hold a message, unless its push says otherwise",
		show: func(s *tarry.Settings) string { return orNothing(s.Defaults.TTR) },
		take: func(to, from *tarry.Settings) { to.Defaults.TTR = from.Defaults.TTR },
	},
	{
		name: "expire-after", means: "after its due time a message that nobody got is dropped, unless its push says otherwise",
		show: func(s *tarry.Settings) string { return orNever(s.Defaults.ExpireAfter) },
		take: func(to, from *tarry.Settings) { to.Defaults.ExpireAfter = from.Defaults.ExpireAfter },
	},
	{
		name: "remember", means: "the key stays known when a message has gone, unless its push says otherwise",
		show: func(s *tarry.Settings) string { return orNever(s.Defaults.Remember) },
		take: func(to, from *tarry.Settings) { to.Defaults.Remember = from.Defaults.Remember },
	},
	{
		name: "isolate", means: "whether a message that lapsed twice is leased alone, unless its push says otherwise",
		show: func(s *tarry.Settings) string {
			if s.Defaults.Isolate == nil {
				return ""
			}
			return strconv.FormatBool(*s.Defaults.Isolate)
		},
		take: func(to, from *tarry.Settings) { to.Defaults.Isolate = from.Defaults.Isolate },
	},
	{
		name: "dead-keep", means: "after their death dead messages are dropped",
		show: func(s *tarry.Settings) string { return orNothing(s.DeadKeep) },
		take: func(to, from *tarry.Settings) { to.DeadKeep = from.DeadKeep },
	},
	{
		name: "dead-max", means: "dead messages stay at most; the longest dead are dropped", shared: true,
		show: func(s *tarry.Settings) string { return countText(s.DeadMax) },
		take: func(to, from *tarry.Settings) { to.DeadMax = from.DeadMax },
	},
	{
		name: "max-pending", means: "live messages at most; a push that would make more is refused", shared: true,
		show: func(s *tarry.Settings) string { return countText(s.MaxPending) },
		take: func(to, from *tarry.Settings) { to.MaxPending = from.MaxPending },
	},
	{
		name: "in-flight", means: "messages at most are held by workers at once", shared: true,
		show: func(s *tarry.Settings) string { return countText(s.InFlight) },
		take: func(to, from *tarry.Settings) { to.InFlight = from.InFlight },
	},
	{
		name: "rate", means: "messages at most are handed out a second", shared: true,
		show: func(s *tarry.Settings) string {
			if s.Rate == 0 {
				return ""
			}
			return strconv.FormatFloat(s.Rate, 'f', -1, 64)
		},
		take: func(to, from *tarry.Settings) { to.Rate = from.Rate },
	},
	{
		name: "burst", means: "messages at most are handed out at once", shared: true,
		show: func(s *tarry.Settings) string { return countText(s.Burst) },
		take: func(to, from *tarry.Settings) { to.Burst = from.Burst },
	},
}

func settingNames() string {
	var names []string
	for _, q := range queueSettings {
		names = append(names, q.name)
	}
	return strings.Join(names, ", ")
}

// countText writes a count, "" for none.
func countText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// orNothing writes a duration, "" for none.
func orNothing(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return tarry.FormatDuration(d)
}

// orNever writes a duration that may be tarry.Never, "" for none.
func orNever(d time.Duration) string {
	if d == tarry.Never {
		return "never"
	}
	return orNothing(d)
}
