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
	Configuring = requestObject("Settings", "The settings of a queue, all of them: what is absent is unset.",
		required("settings", settingFields.kind("settings"), func(s *Settings) *engine.Settings { return &s.Settings }, ""),
		optional("revision", asRevision, func(s *Settings) *string { return &s.Revision }, "store them only if they have not changed since this was read; without it: overwrite"))
	// Configured is an answer with the settings.
	Configured = answerObject("StoredSettings", "The settings of a queue: what is absent is unset.",
		required("settings", answeredSettings.kind("settings"), func(s *Settings) *engine.Settings { return &s.Settings }, ""),
		required("revision", asText, func(s *Settings) *string { return &s.Revision }, "changes whenever they do"),
	).checked(func(r *Reader, got Fields, _ *Settings) {
		const settings = 0
		if !got.Has(settings) { // else a client that reads, changes and writes them would unset them all
			r.Wrong("settings: is missing")
		}
	})
	answeredSettings = answerObject("StoredValues", "What a queue is set to.", settingFields.members...)
	settingFields    = requestObject("SettingValues", "What a queue can be set to. Limits act at once, on all who use it.",
		optional("priority", asPriority, func(s *engine.Settings) **uint32 { return &s.Defaults.Priority }, "the default for pushes without one, like the next six; unset: 1024"),
		optional("max_attempts", asMaxAttempts, func(s *engine.Settings) *uint32 { return &s.Defaults.MaxAttempts }, "unset: 20"),
		optional("ttr", asTTR, func(s *engine.Settings) *time.Duration { return &s.Defaults.TTR }, "1ms to 24h; unset: 60s"),
		optional("backoff", asBackoff, func(s *engine.Settings) *[]time.Duration { return &s.Defaults.Backoff }, ""),
		optional("expire_after", asSpanOrNever, func(s *engine.Settings) *time.Duration { return &s.Defaults.ExpireAfter }, "0s, unset: never"),
		optional("remember", asRemember, func(s *engine.Settings) *time.Duration { return &s.Defaults.Remember }, "0s, unset: not at all"),
		optional("isolate", asIsolate, func(s *engine.Settings) **bool { return &s.Defaults.Isolate }, "unset: true"),
		optional("dead_keep", asDuration.checked(func(r *Reader, name string, d time.Duration) {
			r.mustNotBeZero(name, d != 0, "to keep dead messages for ever")
		}), func(s *engine.Settings) *time.Duration { return &s.DeadKeep }, "how long a dead message is kept, more than 0s; unset: for ever"),
		optional("dead_max", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.DeadMax }, "how many dead messages are kept: beyond that, those that died first are dropped; unset: any number"),
		optional("history", asSpanOrNever, func(s *engine.Settings) *time.Duration { return &s.History }, "how long finished messages are listed; 0s: not at all; unset: as the store says"),
		optional("history_max", limitsOr(engine.MaxCount, "for the store's"), func(s *engine.Settings) *int64 { return &s.HistoryMax }, "how many finished messages are listed: beyond that, those that ended first are dropped; unset: as the store says"),
		optional("max_pending", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.MaxPending }, "how many live messages there may be; unset: any number"),
		optional("in_flight", limits(engine.MaxCount), func(s *engine.Settings) *int64 { return &s.InFlight }, "how many messages may be leased at a time, over all workers; unset: any number"),
		optional("burst", limits(engine.MaxBurst), func(s *engine.Settings) *int64 { return &s.Burst }, "how many leases may come at once after a quiet time; only with a rate; unset: what rate gives in 0.1 s, at least 1"),
		optional("rate", asRate, func(s *engine.Settings) *float64 { return &s.Rate }, "leases a second, at least one a day; unset: any number"))
)

// asRevision is the revision that a request expects.
var asRevision = asText.described(schema.Text(1, 0)).checked(func(r *Reader, _, revision string) {
	if revision == "" {
		r.Wrong("revision: is empty; leave it out to overwrite whatever is stored")
	}
})

// limits returns the kind of settings that are limits of at most most.
func limits(most uint64) kind[int64] { return limitsOr(most, "for no limit") }

// limitsOr is limits where unset says what leaving one out means.
func limitsOr(most uint64, unset string) kind[int64] {
	return whole[int64](0, most).described(schema.Whole(1, int64(most))).checked(func(r *Reader, name string, n int64) {
		r.mustNotBeZero(name, n != 0, unset)
	})
}

var asRate = scalar(schema.Type("number").With("minimum", engine.MinRate).With("maximum", engine.MaxRate), (*Reader).rate, appendRate)

func appendRate(b []byte, rate float64) []byte { return strconv.AppendFloat(b, rate, 'f', -1, 64) }

// mustNotBeZero fails unless a setting is ok: a setting of 0 would set nothing. unset says
// what leaving it out means.
func (r *Reader) mustNotBeZero(name string, ok bool, unset string) {
	if ok || r.err != nil {
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
	if r.mustNotBeZero(name, f != 0, "for no limit"); f < 0 || f > engine.MaxRate || f != 0 && f < engine.MinRate {
		r.Wrong("%s: must be from one a day, which is %.4g, to %d a second, not %s", name, 1/(24*time.Hour).Seconds(), engine.MaxRate, engine.Clip(string(text)))
	}
	return f
}
