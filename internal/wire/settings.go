package wire

import (
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// AppendSettings appends the settings of a queue, what is unset left out, and their
// revision, if there is one: a request to store them, and the answer to that.
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
	b[start] = '{' // for the comma
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
	settingsFields = []string{"settings", "revision"}
	settingFields  = []string{
		"priority", "max_attempts", "ttr", "backoff", "expire_after", "remember",
		"dead_keep", "dead_max", "max_pending", "in_flight", "burst", "rate",
	}
)

// Settings reads the settings of a queue and their revision; a request may have none.
func (r *Reader) Settings() (s engine.Settings, revision string) {
	seen := r.fields("request", settingsFields, func(f int) {
		if f == 1 {
			if revision = r.text("revision"); revision == "" {
				r.Wrong("revision: is empty; leave it out to overwrite whatever stands")
			}
			return
		}
		r.fields("settings", settingFields, func(f int) { r.setting(settingFields[f], &s) })
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

// set notes a setting of zero, which sets nothing, as wrong.
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
	f, _ := strconv.ParseFloat(string(text), 64) // what is too large is infinite
	if r.set(name, f != 0, "for no limit"); f < 0 || f > engine.MaxRate || f != 0 && f < engine.MinRate {
		r.Wrong("%s: must be from one a day, which is %.4g, to %d a second, not %s", name, 1/(24*time.Hour).Seconds(), engine.MaxRate, engine.Clip(string(text)))
	}
	return f
}
