package server

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry"
)

// input is the JSON of one request as it is being read: a cursor that goes over the
// text once, without reflection, and notes what is wrong by the name of the field.
//
// There are two kinds of wrong. Malformed JSON ends the reading: err is set, and
// every further call does nothing. A wrong field is noted in bad, the first one
// only, and reading goes on behind it, so that one element of a batch can fail
// alone.
type input struct {
	data  []byte // the whole request
	arena []byte // bodies decoded from base64; never grows once in use
	rd    bytes.Buffer
	dec   jsontext.Decoder
	err   error
	bad   *failure
}

// Inputs are kept for further requests, those with large buffers for large ones: else
// a small one would have much of the budget.
var (
	inputs      = sync.Pool{New: func() any { return new(input) }}
	largeInputs = sync.Pool{New: func() any { return new(input) }}
)

// inputFor returns an input for a request whose body is said to have so many bytes.
func inputFor(said int64) *input {
	if said <= unheld {
		return inputs.Get().(*input)
	}
	return largeInputs.Get().(*input)
}

// jsonOptions: our own objects check for duplicate names by themselves; inside of
// bodies they are the caller's business.
var jsonOptions = jsontext.AllowDuplicateNames(true)

// parse begins to read data.
func (in *input) parse(data []byte) {
	in.data, in.err, in.bad = data, nil, nil
	in.arena = in.arena[:0]
	in.rd = *bytes.NewBuffer(data)
	in.dec.Reset(&in.rd, jsonOptions)
}

// free hands the buffers to the next request. Nobody may hold bodies of this one.
func (in *input) free() {
	in.rd = bytes.Buffer{}
	switch size := max(cap(in.data), cap(in.arena)); {
	case size <= unheld:
		inputs.Put(in)
	case size <= maxPooled:
		largeInputs.Put(in)
	}
}

func (in *input) malformed(err error) {
	if in.err != nil {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		in.err = wrong("malformed JSON: it ends too early")
		return
	}
	var se *jsontext.SyntacticError
	if errors.As(err, &se) && se.Err != nil {
		in.err = wrong("malformed JSON at byte %d: %v", se.ByteOffset+1, se.Err)
		return
	}
	in.err = wrong("malformed JSON: %v", err)
}

// wrong notes a wrong field, the first only.
func (in *input) wrong(format string, args ...any) {
	if in.bad == nil {
		in.bad = wrong(format, args...)
	}
}

// failed returns what went wrong until here, if anything.
func (in *input) failed() error {
	switch {
	case in.err != nil:
		return in.err
	case in.bad != nil:
		return in.bad
	}
	return nil
}

// end checks that nothing follows.
func (in *input) end() {
	if in.err != nil {
		return
	}
	if _, err := in.dec.ReadToken(); err == nil {
		in.err = wrong("malformed JSON: there is something behind the object")
	} else if !errors.Is(err, io.EOF) {
		in.malformed(err)
	}
}

// open enters an object or array; it notes a value of another kind as wrong, skips
// it and returns false.
func (in *input) open(name string, kind jsontext.Kind) bool {
	if in.err != nil {
		return false
	}
	if got := in.dec.PeekKind(); got != kind {
		what := "an object"
		if kind == '[' {
			what = "an array"
		}
		in.mismatch(name, what, got)
		return false
	}
	if _, err := in.dec.ReadToken(); err != nil {
		in.malformed(err)
		return false
	}
	return true
}

// more reports whether the array, or object, that was opened has something more; at
// its end it leaves it.
func (in *input) more() bool {
	if in.err != nil {
		return false
	}
	switch in.dec.PeekKind() {
	case ']', '}', 0:
		if _, err := in.dec.ReadToken(); err != nil {
			in.malformed(err)
		}
		return false
	}
	return true
}

// next goes to the next field of the object that was opened and returns the index
// of its name in names, or -1 at the object's end, which it leaves. Fields that are
// unknown or were seen before are noted as wrong and skipped.
func (in *input) next(names []string, seen *uint32) int {
	for in.err == nil {
		if !in.more() {
			return -1
		}
		raw, ok := in.value()
		if !ok {
			return -1
		}
		name := in.unquote(raw)
		i := 0
		for i < len(names) && names[i] != string(name) {
			i++
		}
		switch {
		case i == len(names):
			in.wrong("%s: no such field", clip(string(name)))
		case *seen&(1<<i) != 0:
			in.wrong("%s: given twice", names[i])
		default:
			*seen |= 1 << i
			return i
		}
		in.skip()
	}
	return -1
}

func (in *input) skip() {
	if err := in.dec.SkipValue(); err != nil {
		in.malformed(err)
	}
}

// value reads the next value and returns its text as it stands in the request.
func (in *input) value() ([]byte, bool) {
	v, err := in.dec.ReadValue()
	if err != nil {
		in.malformed(err)
		return nil, false
	}
	end := int(in.dec.InputOffset())
	return in.data[end-len(v) : end : end], true
}

var kindNames = map[jsontext.Kind]string{
	'n': "null", 'f': "a boolean", 't': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// mismatch notes a value of the wrong kind and skips it.
func (in *input) mismatch(name, want string, got jsontext.Kind) {
	if has, ok := kindNames[got]; ok {
		in.wrong("%s: must be %s, not %s", name, want, has)
	}
	in.skip()
}

// unquote returns what a JSON string says. It is valid like data.
func (in *input) unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		in.malformed(err)
	}
	return s
}

// bytes reads a string; ok is false when it is something else.
func (in *input) bytes(name string) (s []byte, ok bool) {
	if in.err != nil {
		return nil, false
	}
	if got := in.dec.PeekKind(); got != '"' {
		in.mismatch(name, "a string", got)
		return nil, false
	}
	raw, ok := in.value()
	if !ok {
		return nil, false
	}
	return in.unquote(raw), in.err == nil
}

func (in *input) text(name string) string {
	s, _ := in.bytes(name)
	return string(s)
}

func (in *input) flag(name string) bool {
	if in.err != nil {
		return false
	}
	got := in.dec.PeekKind()
	if got != 't' && got != 'f' {
		in.mismatch(name, "true or false", got)
		return false
	}
	in.skip()
	return got == 't'
}

// whole reads a whole number from 0 to most.
func (in *input) whole(name string, most uint64) uint64 {
	if in.err != nil {
		return 0
	}
	if got := in.dec.PeekKind(); got != '0' {
		in.mismatch(name, "a number", got)
		return 0
	}
	raw, ok := in.value()
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > most {
		in.wrong("%s: must be a whole number from 0 to %d, not %s", name, most, clip(string(raw)))
		return 0
	}
	return n
}

const durationHint = `a duration is a string such as "1500ms", "30m", "48h" or "7d"`

// duration reads a duration that is not negative.
func (in *input) duration(name string) time.Duration {
	if in.err == nil && in.dec.PeekKind() == '0' {
		in.mismatch(name, "a string", '0')
		in.hint(durationHint)
		return 0
	}
	s, ok := in.bytes(name)
	if !ok {
		return 0
	}
	d, err := tarry.ParseDuration(string(s))
	switch {
	case err != nil:
		in.wrong("%s: %q is not a duration", name, clip(string(s)))
		in.hint(durationHint)
	case d < 0:
		in.wrong("%s: %s is negative", name, clip(string(s)))
	}
	return max(d, 0)
}

// hint adds to what was found wrong just now, unless something was before.
func (in *input) hint(hint string) {
	if in.bad != nil && in.bad.hint == "" {
		in.bad.hint = hint
	}
}

const timeHint = `a time is a string in RFC 3339 such as "2030-01-31T23:59:59.999Z"`

func (in *input) instant(name string) time.Time {
	s, ok := in.bytes(name)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		in.wrong("%s: %q is not a time", name, clip(string(s)))
		in.hint(timeHint)
	}
	return t.UTC()
}

// base64 reads bytes in base64. The result is valid until the input is freed.
func (in *input) base64(name string) []byte {
	s, ok := in.bytes(name)
	if !ok {
		return nil
	}
	if in.arena == nil {
		// All bodies together are smaller than the request.
		in.arena = make([]byte, 0, len(in.data))
	} else if cap(in.arena)-len(in.arena) < len(s) {
		// Bodies read before keep the old one.
		in.arena = make([]byte, 0, max(len(in.data), len(s)))
	}
	start := len(in.arena)
	b, err := base64.StdEncoding.AppendDecode(in.arena, s)
	if err != nil {
		in.wrong("%s: not standard base64 with padding: %v", name, err)
		return nil
	}
	in.arena = b
	return b[start:len(b):len(b)]
}

// texts reads an array of strings, at most most of them.
func (in *input) texts(name string, most int, each func(s string)) {
	if !in.open(name, '[') {
		return
	}
	for n := 0; in.more(); n++ {
		s, ok := in.bytes(fmt.Sprintf("%s[%d]", name, n))
		switch {
		case n == most:
			in.wrong("%s: more than %d entries", name, most)
		case n < most && ok:
			each(string(s))
		}
	}
}

// clip keeps messages short whatever came in.
func clip(s string) string {
	if len(s) <= 64 {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:64]), nil)) + "…"
}
