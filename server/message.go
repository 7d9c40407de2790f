package server

import (
	"fmt"
	"math"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// The fields of a message to push, in the order of messageFields.
const (
	fieldQueue = iota
	fieldBody
	fieldBodyBase64
	fieldContentType
	fieldDelay
	fieldDue
	fieldKey
	fieldPriority
	fieldHeaders
	fieldMaxAttempts
	fieldBackoff
	fieldTTR
	fieldExpireAfter
	fieldOnConflict
)

var messageFields = []string{
	"queue", "body", "body_base64", "content_type", "delay", "due", "key", "priority",
	"headers", "max_attempts", "backoff", "ttr", "expire_after", "on_conflict",
}

// fields says which fields of an object were there.
type fields uint32

func (f fields) has(field int) bool { return f&(1<<field) != 0 }

// message reads a message to push into m, which gets all defaults. Its body is
// valid until the input is freed.
func (in *input) message(name string, m *engine.Message) fields {
	*m = tarry.NewMessage("", nil)
	if !in.open(name, '{') {
		return 0
	}
	var seen uint32
	for {
		f := in.next(messageFields, &seen)
		if f < 0 {
			break
		}
		in.messageField(f, m)
	}
	got := fields(seen)
	switch {
	case got.has(fieldBody) && got.has(fieldBodyBase64):
		in.wrong("body: give body or body_base64, not both")
	case got.has(fieldDelay) && got.has(fieldDue):
		in.wrong("delay: give delay or due, not both")
	case !got.has(fieldBody):
	case m.ContentType == "":
		m.ContentType = "application/json"
	case !isJSON(m.ContentType):
		in.wrong("body: is JSON, which does not fit the content_type %s", clip(m.ContentType))
		in.hint("send what is not JSON as body_base64")
	}
	return got
}

func (in *input) messageField(f int, m *engine.Message) {
	switch name := messageFields[f]; f {
	case fieldQueue:
		m.Queue = in.text(name)
	case fieldBody:
		m.Body, _ = in.value()
	case fieldBodyBase64:
		m.Body = in.base64(name)
	case fieldContentType:
		if s, ok := in.bytes(name); string(s) == "application/json" {
			m.ContentType = "application/json"
		} else if ok {
			m.ContentType = string(s)
		}
	case fieldDelay:
		m.Due.In = in.duration(name)
	case fieldDue:
		m.Due.At = in.instant(name)
	case fieldKey:
		if m.Key = in.text(name); m.Key == "" {
			in.wrong("key: is empty; leave it out for a message without a key")
		}
	case fieldPriority:
		m.Priority = uint32(in.whole(name, math.MaxUint32))
	case fieldHeaders:
		m.Headers = in.headers(name)
	case fieldMaxAttempts:
		m.MaxAttempts = uint32(in.whole(name, tarry.MaxMaxAttempts))
	case fieldBackoff:
		m.Backoff = in.backoff(name)
	case fieldTTR:
		m.TTR = in.ttr(name)
	case fieldExpireAfter:
		m.ExpireAfter = in.duration(name)
	case fieldOnConflict:
		s, ok := in.bytes(name)
		c, err := engine.ParseConflict(string(s))
		if ok && err != nil {
			in.wrong("%s: must be reject, keep, replace, keep_due or rearm, not %q", name, clip(string(s)))
		}
		m.OnConflict = c
	}
}

// ttr reads how long a lease lasts.
func (in *input) ttr(name string) time.Duration {
	d := in.duration(name)
	if in.bad == nil && (d < tarry.MinTTR || d > tarry.MaxTTR) {
		in.wrong("%s: %s is outside 1ms to 24h", name, tarry.FormatDuration(d))
	}
	return d
}

func (in *input) backoff(name string) []time.Duration {
	if !in.open(name, '[') {
		return nil
	}
	var all []time.Duration
	for in.more() {
		d := in.duration(fmt.Sprintf("%s[%d]", name, len(all)))
		if all = append(all, d); len(all) > tarry.MaxBackoffs {
			in.wrong("%s: more than %d entries", name, tarry.MaxBackoffs)
			all = all[:0]
		}
	}
	return all
}

// headers reads an object of strings, in the order of the text. A name may have an
// array of strings instead, for a header that comes more than once; and an array of
// pairs of name and value stands for any order.
func (in *input) headers(name string) []engine.Header {
	if in.err == nil && in.dec.PeekKind() == '[' {
		return in.pairs(name)
	}
	if !in.open(name, '{') {
		return nil
	}
	var all []engine.Header
	for in.more() {
		raw, ok := in.value()
		if !ok {
			return nil
		}
		h := string(in.unquote(raw))
		switch {
		case len(all) > tarry.MaxHeaders:
			in.skip() // refused as too many further up
		case hasHeader(all, h):
			in.wrong("%s: %s is given twice", name, clip(h))
			in.skip()
		case in.dec.PeekKind() == '[':
			in.texts(name+"."+clip(h), tarry.MaxHeaders, func(v string) { all = append(all, engine.Header{Name: h, Value: v}) })
		default:
			all = append(all, engine.Header{Name: h, Value: in.text(name + "." + clip(h))})
		}
	}
	return all
}

func (in *input) pairs(name string) (all []engine.Header) {
	if !in.open(name, '[') {
		return nil
	}
	for in.more() {
		var pair []string
		in.texts(name, 2, func(s string) { pair = append(pair, s) })
		switch {
		case len(pair) != 2:
			in.wrong("%s: an array of headers holds pairs of name and value", name)
		case len(all) <= tarry.MaxHeaders: // more are refused further up
			all = append(all, engine.Header{Name: pair[0], Value: pair[1]})
		}
	}
	return all
}
