package wire

import (
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// Settings are the settings of a queue, and their revision.
type Settings struct {
	engine.Settings
	Revision string // "": none, in a request
}

var (
	// Configuring is a request to store settings.
	Configuring = asked("Settings", "The settings of a queue, all of them: what is absent is unset.",
		must("settings", settingFields.kind("settings"), func(s *Settings) *engine.Settings { return &s.Settings }, ""),
		may("revision", asText.told(schema.Text(1, 0)).checked(func(r *Reader, _, revision string) {
			if revision == "" {
				r.Wrong("revision: is empty; leave it out to overwrite whatever stands")
			}
		}), func(s *Settings) *string { return &s.Revision }, "store them only if nobody has written since this was read; without it: overwrite"))
	// Configured is an answer with the settings.
	Configured = answered("StoredSettings", "The settings of a queue: what is absent is unset.",
		must("settings", settingsTold.kind("settings"), func(s *Settings) *engine.Settings { return &s.Settings }, ""),
		must("revision", asText, func(s *Settings) *string { return &s.Revision }, "changes whenever they do"),
	).checked(func(r *Reader, got Fields, _ *Settings) {
		const settings = 0
		if !got.Has(settings) { // else a client that reads, changes and writes them would unset them all
			r.Wrong("settings: is missing")
		}
	})
	settingsTold  = answered("StoredValues", "What a queue is set to.", settingFields.members...)
	settingFields = asked("SettingValues", "What a queue can be set to. Limits act at once, on all who use it.",
		may("priority", asPriority, func(s *engine.Settings) **uint32 { return &s.Defaults.Priority }, "of pushes that do not say, as are the next six; unset: 1024"),
		may("max_attempts", asMaxAttempts, func(s *engine.Settings) *uint32 { return &s.Defaults.MaxAttempts }, "unset: 20"),
		may("ttr", asTTR, func(s *engine.Settings) *time.Duration { return &s.Defaults.TTR }, "1ms to 24h; unset: 60s"),
		may("backoff", asBackoff, func(s *engine.Settings) *[]time.Duration { return &s.Defaults.Backoff }, ""),
		may("expire_after", asExpireAfter, func(s *engine.Settings) *time.Duration { return &s.Defaults.ExpireAfter }, "0s, unset: never"),
		may("remember", asRemember, func(s *engine.Settings) *time.Duration { return &s.Defaults.Remember }, "0s, unset: not at all"),
		may("isolate", asIsolate, func(s *engine.Settings) **bool { return &s.Defaults.Isolate }, "unset: true"),
		may("dead_keep", asDuration.checked(func(r *Reader, name string, d time.Duration) {
			r.set(name, d != 0, "to keep dead messages for ever")
		}), func(s *engine.Settings) *time.Duration { return &s.DeadKeep }, "how long a dead message stays, more than nothing; unset: for ever"),
		may("dead_max", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.DeadMax }, "dead messages at most; of more those that died first are dropped; unset: any number"),
		may("max_pending", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.MaxPending }, "live messages at most; unset: any number"),
		may("in_flight", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.InFlight }, "messages leased at once at most, over all workers; unset: any number"),
		may("burst", limits(engine.MaxBurst), func(s *engine.Settings) *int64 { return &s.Burst }, "leases at once at most when rate was not used up before; only with a rate; unset: what rate gives in 0.1 s, at least 1"),
		may("rate", asRate, func(s *engine.Settings) *float64 { return &s.Rate }, "leases a second, at least one a day; unset: any number"))
)

// limits returns the kind of settings that are limits of at most most.
func limits(most uint64) kind[int64] {
	return whole[int64](0, most).told(schema.Whole(1, int64(most))).checked(func(r *Reader, name string, n int64) {
		r.set(name, n != 0, "for no limit")
	})
}

var asRate = scalar(schema.Type("number").With("minimum", engine.MinRate).With("maximum", engine.MaxRate), (*Reader).rate, appendRate)

func appendRate(b []byte, rate float64) []byte { return strconv.AppendFloat(b, rate, 'f', -1, 64) }

// set notes a setting of 0, which would set nothing, as wrong. is says that it is not 0;
// unset says what leaving it out is for.
func (r *Reader) set(name string, is bool, unset string) {
	if is || r.err != nil {
		return
	}
	hint := ""
	if name == "in_flight" || name == "rate" {
		hint = "to hand out nothing pause the queue instead"
	}
	r.wrongHint(hint, "%s: must be more than 0; leave it out %s", name, unset)
}

// rate reads leases a second.
func (r *Reader) rate(name string) float64 {
	text, ok := r.number(name)
	if !ok {
		return 0
	}
	f, _ := strconv.ParseFloat(string(text), 64) // a number that is too large becomes infinite
	if r.set(name, f != 0, "for no limit"); f < 0 || f > engine.MaxRate || f != 0 && f < engine.MinRate {
		r.Wrong("%s: must be from one a day, which is %.4g, to %d a second, not %s", name, 1/(24*time.Hour).Seconds(), engine.MaxRate, engine.Clip(string(text)))
	}
	return f
}
