package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// unquote returns the text of a JSON string. It may share memory with data.
func (r *Reader) unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		r.malformed(err)
	}
	return s
}

// bytes reads a string; ok is false when it is something else.
func (r *Reader) bytes(name string) (s []byte, ok bool) {
	if r.err != nil {
		return nil, false
	}
	if got := r.dec.PeekKind(); got != '"' {
		r.mismatch(name, "a string", got, "")
		return nil, false
	}
	raw, ok := r.value()
	if !ok {
		return nil, false
	}
	return r.unquote(raw), r.err == nil
}

func (r *Reader) text(name string) string {
	s, _ := r.bytes(name)
	return string(s)
}

// contentType reads a content type. It allocates nothing for the common ones.
func (r *Reader) contentType(name string) string {
	s, _ := r.bytes(name)
	switch string(s) {
	case "application/json":
		return "application/json"
	case "text/plain":
		return "text/plain"
	case "application/octet-stream":
		return "application/octet-stream"
	}
	return string(s)
}

func (r *Reader) flag(name string) bool {
	if r.err != nil {
		return false
	}
	got := r.dec.PeekKind()
	if got != 't' && got != 'f' {
		r.mismatch(name, "true or false", got, "")
		return false
	}
	r.skip()
	return got == 't'
}

// number reads the text of a number; ok is false when it is something else.
func (r *Reader) number(name string) (text []byte, ok bool) {
	if r.err != nil {
		return nil, false
	}
	if got := r.dec.PeekKind(); got != '0' {
		r.mismatch(name, "a number", got, "")
		return nil, false
	}
	return r.value()
}

// wholeFrom reads a whole number from least to most.
func (r *Reader) wholeFrom(name string, least, most uint64) uint64 {
	raw, ok := r.number(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n < least || n > most {
		r.Wrong("%s: must be a whole number from %d to %d, not %s", name, least, most, engine.Clip(string(raw)))
		return 0
	}
	return n
}

// count reads a count. The number of messages that died since the last report may be
// negative, since a late settlement takes a death back.
func (r *Reader) count(name string) int64 {
	raw, ok := r.number(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		r.Wrong("%s: %s is no count", name, engine.Clip(string(raw)))
	}
	return n
}

const durationHint = `a duration is a string such as "1500ms", "30m", "48h" or "7d"`

// duration reads a duration that is not negative.
func (r *Reader) duration(name string) time.Duration {
	d, text, err := r.span(name)
	if err != nil {
		r.Wrong("%s: %q is %v", name, engine.Clip(string(text)), err)
	}
	return d
}

// within reads a duration from least to most.
func (r *Reader) within(name string, least, most time.Duration) time.Duration {
	d, text, err := r.span(name)
	if err != nil || d < least || d > most {
		r.Wrong("%s: %s is outside %s to %s", name, engine.Clip(string(text)), duration.Format(least), duration.Format(most))
	}
	return d
}

// span reads a duration that is not negative, and returns its text too. err can only be
// duration.ErrRange; span itself notes all other errors.
func (r *Reader) span(name string) (d time.Duration, text []byte, err error) {
	if r.err == nil && r.dec.PeekKind() == '0' {
		r.mismatch(name, "a string", '0', durationHint)
		return 0, nil, nil
	}
	text, ok := r.bytes(name)
	if !ok {
		return 0, nil, nil
	}
	d, err = duration.Parse(string(text))
	switch {
	case d < 0, err == duration.ErrRange && text[0] == '-':
		r.Wrong("%s: %s is negative", name, engine.Clip(string(text)))
		return 0, text, nil
	case err == duration.ErrSyntax:
		r.wrongHint(durationHint, "%s: %q is not a duration", name, engine.Clip(string(text)))
		return 0, text, nil
	}
	return d, text, err
}

// ttr reads the length of a lease.
func (r *Reader) ttr(name string) time.Duration { return r.within(name, engine.MinTTR, engine.MaxTTR) }

const timeHint = `a time is a string in RFC 3339 such as "2030-01-31T23:59:59.999Z"; in a query + is written %2B`

func (r *Reader) time(name string) time.Time {
	if r.err == nil && r.dec.PeekKind() == '0' {
		r.mismatch(name, "a string", '0', timeHint)
		return time.Time{}
	}
	s, ok := r.bytes(name)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		r.wrongHint(timeHint, "%s: %q is not a time", name, engine.Clip(string(s)))
	}
	return t.UTC()
}

func (r *Reader) id(name string) engine.ID {
	s, ok := r.bytes(name)
	id, err := engine.ParseID(string(s))
	if ok && err != nil {
		r.Wrong("%s: %q is not an id", name, engine.Clip(string(s)))
	}
	return id
}

// base64 reads bytes in base64. Of a request, the result is valid until Reset.
func (r *Reader) base64(name string) []byte {
	s, ok := r.bytes(name)
	if !ok {
		return nil
	}
	switch {
	case r.lenient:
		r.arena = nil
		if len(s) > 0 {
			r.arena = make([]byte, 0, base64.StdEncoding.DecodedLen(len(s)))
		}
	case r.arena == nil:
		// All bodies together are smaller than the request.
		r.arena = make([]byte, 0, len(r.data))
	case cap(r.arena)-len(r.arena) < len(s):
		// The bodies read so far keep the old arena.
		r.arena = make([]byte, 0, max(len(r.data), len(s)))
	}
	start := len(r.arena)
	b, err := base64.StdEncoding.AppendDecode(r.arena, s)
	if err != nil {
		r.Wrong("%s: not standard base64 with padding: %v", name, err)
		return nil
	}
	r.arena = b
	return b[start:len(b):len(b)]
}

// texts reads an array of strings, at most most of them.
func (r *Reader) texts(name string, most int, each func(s string)) {
	r.all(name, most, func(n int) {
		before := r.bad
		s, ok := r.bytes(name)
		r.element(name, n, before)
		if ok {
			each(string(s))
		}
	})
}

// element adds the array and the index n in it to the error of the element just read, or of a
// field of it. before is the error from before that, if any.
func (r *Reader) element(name string, n int, before *Error) {
	if r.bad == before {
		return
	}
	what, ok := strings.CutPrefix(r.bad.Message, name+":")
	if ok {
		what = ":" + what
	} else { // the field alone could be taken for one beside the array
		what = "." + r.bad.Message
	}
	r.bad.Message = fmt.Sprintf("%s[%d]%s", name, n, what)
}

// clipLong shortens a text that is longer than any valid key.
func clipLong(s string) string {
	if len(s) <= engine.MaxKeyBytes {
		return s
	}
	return engine.Clip(s)
}
