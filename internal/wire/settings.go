package wire

import (
	"math"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// AppendSettings appends the settings of a queue that are set, and their revision, if there
// is one. This is both the request to store settings and the answer to it.
func AppendSettings(b []byte, s *engine.Settings, revision string) []byte {
	b = append(b, `{"settings":`...)
	start := len(b)
	b = appendTerms(b, &s.Defaults)
	if s.DeadKeep != 0 {
		b = appendDuration(b, `,"dead_keep":`, s.DeadKeep)
	}
	for _, c := range counts(s) {
		if *c.n != 0 {
			b = appendInt(b, `,"`+c.name+`":`, *c.n)
		}
	}
	if s.Rate != 0 {
		b = strconv.AppendFloat(append(b, `,"rate":`...), s.Rate, 'f', -1, 64)
	}
	if len(b) == start {
		b = append(b, '{')
	}
	b[start] = '{' // in place of the comma
	b = append(b, '}')
	if revision != "" {
		b = appendText(b, `,"revision":`, revision)
	}
	return append(b, '}')
}

type count struct {
	name string
	n    *int64
	most uint64
}

// counts are the settings that are counts.
func counts(s *engine.Settings) [4]count {
	return [...]count{
		{"dead_max", &s.DeadMax, engine.MaxCount},
		{"max_pending", &s.MaxPending, engine.MaxCount},
		{"in_flight", &s.InFlight, engine.MaxCount},
		{"burst", &s.Burst, engine.MaxBurst},
	}
}

var (
	// Configuring is the shape of a request to store settings.
	Configuring = asked("Settings", "The settings of a queue, all of them: what is absent is unset.",
		must("settings", settingFields.Ref(), ""),
		may("revision", schema.Text(1, 0), "store them only if nobody has written since this was read; without it: overwrite"))
	// Configured is the shape of an answer with the settings.
	Configured = answered("StoredSettings", "The settings of a queue: what is absent is unset.",
		must("settings", settingsTold.Ref(), ""),
		must("revision", isText, "changes whenever they do"))
	settingsTold  = answered("StoredValues", "What a queue is set to.", settingFields.fields...)
	settingFields = asked("SettingValues", "What a queue can be set to. Limits act at once, on all who use it.",
		may("priority", schema.Whole(0, math.MaxUint32), "of pushes that do not say, as are the next six; unset: 1024"),
		may("max_attempts", schema.Whole(1, engine.MaxMaxAttempts), "unset: 20"),
		may("ttr", isDuration, "1ms to 24h; unset: 60s"),
		may("backoff", isBackoff, ""),
		may("expire_after", isDuration, "0s, unset: never"),
		may("remember", isDuration, "0s, unset: not at all"),
		may("isolate", isFlag, "unset: true"),
		may("dead_keep", isDuration, "how long a dead message stays, more than nothing; unset: for ever"),
		may("dead_max", schema.Whole(1, engine.MaxCount), "dead messages at most; of more those that died first are dropped; unset: any number"),
		may("max_pending", schema.Whole(1, engine.MaxCount), "live messages at most; unset: any number"),
		may("in_flight", schema.Whole(1, engine.MaxCount), "messages leased at once at most, over all workers; unset: any number"),
		may("burst", schema.Whole(1, engine.MaxBurst), "leases at once at most when rate was not used up before; only with a rate; unset: what rate gives in 0.1 s, at least 1"),
		may("rate", schema.Type("number").With("minimum", engine.MinRate).With("maximum", engine.MaxRate), "leases a second, at least one a day; unset: any number"))
)

// Settings reads the settings of a queue and their revision; a request may have none.
func (r *Reader) Settings() (s engine.Settings, revision string) {
	seen := r.fields("request", Configuring, func(f int) {
		if f == 1 {
			if revision = r.text("revision"); revision == "" {
				r.Wrong("revision: is empty; leave it out to overwrite whatever stands")
			}
			return
		}
		r.fields("settings", settingFields, func(f int) { r.setting(settingFields.names[f], &s) })
	})
	if seen&1 == 0 {
		r.Wrong("settings: is missing")
	}
	r.end()
	return s, revision
}

func (r *Reader) setting(name string, s *engine.Settings) {
	switch name {
	case "dead_keep":
		s.DeadKeep = r.duration(name)
		r.set(name, s.DeadKeep != 0, "to keep dead messages for ever")
	case "rate":
		s.Rate = r.rate(name)
	default:
		for _, c := range counts(s) {
			if c.name == name {
				*c.n = int64(r.whole(name, c.most))
				r.set(name, *c.n != 0, "for no limit")
				return
			}
		}
		r.term(name, &s.Defaults)
	}
}

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
