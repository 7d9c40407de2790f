package wire

import (
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// appendTerms appends the terms that are set, each with a comma before it.
func appendTerms(b []byte, t *engine.Terms) []byte {
	if t.Priority != nil {
		b = appendInt(b, `,"priority":`, int64(*t.Priority))
	}
	if t.MaxAttempts != 0 {
		b = appendInt(b, `,"max_attempts":`, int64(t.MaxAttempts))
	}
	if t.TTR != 0 {
		b = appendDuration(b, `,"ttr":`, t.TTR)
	}
	if len(t.Backoff) > 0 {
		b = appendBackoff(b, t.Backoff)
	}
	if t.ExpireAfter != 0 {
		b = appendDuration(b, `,"expire_after":`, max(0, t.ExpireAfter))
	}
	if t.Remember != 0 {
		b = appendDuration(b, `,"remember":`, max(0, t.Remember))
	}
	if t.Isolate != nil {
		b = strconv.AppendBool(append(b, `,"isolate":`...), *t.Isolate)
	}
	return b
}

// term reads one of the terms, by its name in JSON.
func (r *Reader) term(name string, t *engine.Terms) {
	switch name {
	case "priority":
		p := r.uint32(name)
		t.Priority = &p
	case "max_attempts":
		t.MaxAttempts = uint32(r.whole(name, engine.MaxMaxAttempts))
		if t.MaxAttempts == 0 {
			r.Wrong("%s: must be at least 1; leave it out for the default", name)
		}
	case "ttr":
		t.TTR = r.ttr(name)
	case "backoff":
		t.Backoff = r.backoff(name)
	case "expire_after":
		t.ExpireAfter = orNever(r.duration(name))
	case "remember":
		t.Remember = orNever(r.within(name, 0, engine.MaxRemember))
	case "isolate":
		t.Isolate = new(r.flag(name))
	}
}

// orNever returns d, or engine.Never for an explicit 0.
func orNever(d time.Duration) time.Duration {
	if d != 0 {
		return d
	}
	return engine.Never
}
