package httpengine

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
)

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // invalid UTF-8 is replaced
	return b
}

// appendWhen appends a delay or due time, nothing for now.
func appendWhen(b []byte, w engine.When) []byte {
	switch {
	case !w.At.IsZero():
		// With all its digits: it is for the engine to round.
		b = append(b, `,"due":"`...)
		b = w.At.UTC().AppendFormat(b, time.RFC3339Nano)
		return append(b, '"')
	case w.In > 0:
		return appendDuration(append(b, `,"delay":`...), w.In)
	}
	return b
}

func appendDuration(b []byte, d time.Duration) []byte {
	b = append(b, '"')
	b = append(b, d.String()...)
	return append(b, '"')
}

// appendMessage appends a message to push.
func appendMessage(b []byte, m *engine.Message) []byte {
	b = append(b, `{"queue":`...)
	b = appendString(b, m.Queue)
	if m.Key != "" {
		b = append(b, `,"key":`...)
		b = appendString(b, m.Key)
	}
	b = appendWhen(b, m.Due)
	if m.OnConflict != engine.Reject && m.Key != "" { // without a key nothing is in the way
		b = append(b, `,"on_conflict":"`...)
		b = append(b, m.OnConflict.String()...)
		b = append(b, '"')
	}
	if len(m.Body) > 0 {
		b = append(b, `,"body_base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, m.Body)
		b = append(b, '"')
	}
	if m.ContentType != "" {
		b = append(b, `,"content_type":`...)
		b = appendString(b, m.ContentType)
	}
	if len(m.Headers) > 0 {
		b = append(b, `,"headers":`...)
		b = appendHeaders(b, m.Headers)
	}
	b = append(b, `,"priority":`...)
	b = strconv.AppendUint(b, uint64(m.Priority), 10)
	b = append(b, `,"max_attempts":`...)
	b = strconv.AppendUint(b, uint64(m.MaxAttempts), 10)
	b = append(b, `,"ttr":`...)
	b = appendDuration(b, m.TTR)
	if len(m.Backoff) > 0 {
		b = append(b, `,"backoff":[`...)
		for i, d := range m.Backoff {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendDuration(b, d)
		}
		b = append(b, ']')
	}
	if m.ExpireAfter > 0 {
		b = append(b, `,"expire_after":`...)
		b = appendDuration(b, m.ExpireAfter)
	}
	return append(b, '}')
}

// appendHeaders appends an object, or an array of pairs when a name comes more than
// once.
func appendHeaders(b []byte, hs []engine.Header) []byte {
	open, mid, end, first, last := "", ":", "", byte('{'), byte('}')
	if repeated(hs) {
		open, mid, end, first, last = "[", ",", "]", '[', ']'
	}
	b = append(b, first)
	for i, h := range hs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, open...), h.Name)
		b = appendString(append(b, mid...), h.Value)
		b = append(b, end...)
	}
	return append(b, last)
}

func repeated(hs []engine.Header) bool {
	for i, h := range hs {
		for _, before := range hs[:i] {
			if before.Name == h.Name {
				return true
			}
		}
	}
	return false
}

// info reads a message as the API shows it, and its lease.
func (c *cursor) info() (l engine.Lease) {
	c.object(func(name string) {
		switch name {
		case "id":
			l.ID = c.id()
		case "queue":
			l.Queue = c.text()
		case "key":
			l.Key = c.text()
		case "state":
			l.State = c.state()
		case "due":
			l.Due = c.time()
		case "created":
			l.Created = c.time()
		case "expires":
			l.Expires = c.time()
		case "attempt":
			l.Attempt = uint32(c.number())
		case "max_attempts":
			l.MaxAttempts = uint32(c.number())
		case "priority":
			l.Priority = uint32(c.number())
		case "ttr":
			l.TTR = c.duration()
		case "backoff":
			c.array(func() { l.Backoff = append(l.Backoff, c.duration()) })
		case "expire_after":
			l.ExpireAfter = c.duration()
		case "headers":
			l.Headers = c.headers()
		case "content_type":
			l.ContentType = c.text()
		case "body_base64":
			l.Body = c.base64()
		case "body":
			l.Body = c.raw()
		case "last_error":
			l.LastError = c.text()
		case "died":
			l.Died = c.time()
		case "lease":
			l.Token = c.text()
		case "lease_expires":
			l.Deadline = c.time()
		default:
			c.skip()
		}
	})
	return l
}

func (c *cursor) headers() (hs []engine.Header) {
	if c.err == nil && c.dec.PeekKind() == '[' {
		c.array(func() {
			var pair []string
			c.array(func() { pair = append(pair, c.text()) })
			if len(pair) == 2 {
				hs = append(hs, engine.Header{Name: pair[0], Value: pair[1]})
			}
		})
		return hs
	}
	c.object(func(name string) { hs = append(hs, engine.Header{Name: name, Value: c.text()}) })
	return hs
}

// problem is an answer that is not what was asked for.
func problem(format string, args ...any) error {
	return &engine.Error{Op: "read", Err: engine.ErrUnavailable, Hint: "the server's answer makes no sense: " + fmt.Sprintf(format, args...)}
}
