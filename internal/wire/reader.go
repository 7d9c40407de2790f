package wire

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
)

// Reader reads the JSON of one request or answer. It goes over the text once, without
// reflection, and reports errors by the name of the field.
//
// There are two kinds of errors. Malformed JSON ends the reading: err is set, and every
// further call does nothing. After a wrong field the reading goes on, so that one element
// of a batch can fail alone; bad keeps the first such error.
//
// The zero Reader is ready for Reset. It is not safe for concurrent use.
type Reader struct {
	data    []byte // the whole text
	arena   []byte // bodies decoded from base64; never grows once in use
	rd      bytes.Buffer
	dec     jsontext.Decoder
	lenient bool // it reads an answer
	deep    bool // it has read a deeply nested value
	err     error
	bad     *Error
}

// options allow duplicate names: next finds those of our own objects, and inside bodies they
// are the caller's business.
var options = jsontext.AllowDuplicateNames(true)

// Reset begins to read a request. The bodies that it reads share memory with data, and with
// memory of the Reader that the next Reset reuses.
func (r *Reader) Reset(data []byte) {
	r.data, r.err, r.bad, r.lenient, r.deep = data, nil, nil, false, false
	r.arena = r.arena[:0]
	r.rd = *bytes.NewBuffer(data)
	r.dec.Reset(&r.rd, options)
}

// Buffer returns the memory of the last request, emptied. The next request may be read into
// it once nobody uses the bodies of the last one any more.
func (r *Reader) Buffer() []byte { return r.data[:0] }

// Held returns the size of the Reader's largest buffer, in bytes.
func (r *Reader) Held() int { return max(cap(r.data), cap(r.arena)) }

// Err returns what went wrong, if anything: an *Error of status 400 or 413.
func (r *Reader) Err() error {
	switch {
	case r.err != nil:
		return r.err
	case r.bad != nil:
		return r.bad
	}
	return nil
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// ReadAnswer lets f read an answer. It fails if the answer is not what f expects. It does
// not keep data, and the bodies that f reads have memory of their own.
func ReadAnswer(data []byte, f func(r *Reader)) error { return readAll(data, true, f) }

// readAll lets f read data, leniently if it is an answer.
func readAll(data []byte, lenient bool, f func(r *Reader)) error {
	r := readers.Get().(*Reader)
	defer readers.Put(r)
	r.Reset(data)
	r.lenient, r.arena = lenient, nil
	f(r)
	r.end()
	err := r.Err()
	r.data, r.rd, r.arena = nil, bytes.Buffer{}, nil
	return err
}

// cutHint is the hint for an incomplete or empty object.
const cutHint = "send one whole JSON object, up to its last brace; in a shell it stands in single quotes"

func (r *Reader) malformed(err error) {
	if r.err != nil {
		return
	}
	bad := Wrong("malformed JSON: %v", err)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		bad.Message = "malformed JSON: it ends too early"
		if !r.lenient {
			bad.Hint = cutHint
		}
	} else if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok && se.Err != nil {
		bad = Wrong("malformed JSON at byte %d: %v", se.ByteOffset+1, se.Err)
		if strings.Contains(se.Err.Error(), "surrogate") {
			bad.Hint = "a text was cut in the middle of a character; cut between characters (in JavaScript text.toWellFormed() mends it), or send bytes as body_base64"
		}
	}
	r.err = bad
}

// Wrong notes an error in the current field, unless there is an error already.
func (r *Reader) Wrong(format string, args ...any) { r.wrongHint("", format, args...) }

// wrongHint is Wrong with a hint.
func (r *Reader) wrongHint(hint, format string, args ...any) {
	if r.bad == nil {
		r.bad = Wrong(format, args...).WithHint(hint)
	}
}

// end checks that nothing follows.
func (r *Reader) end() {
	if r.deep {
		defer func() { r.dec = jsontext.Decoder{} }() // its stack has grown large
	}
	if r.err != nil {
		return
	}
	if _, err := r.dec.ReadToken(); err == nil {
		r.err = Wrong("malformed JSON: there is something behind the object")
	} else if !errors.Is(err, io.EOF) {
		r.malformed(err)
	}
}

// open enters an object or array. It returns false for a value of another kind, which it
// notes as wrong and skips.
func (r *Reader) open(name string, kind jsontext.Kind) bool {
	if r.err != nil {
		return false
	}
	if got := r.dec.PeekKind(); got != kind {
		what := "an object"
		if kind == '[' {
			what = "an array"
		}
		r.mismatch(name, what, got, "")
		return false
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.malformed(err)
		return false
	}
	return true
}

// more reports whether the current array or object has more elements. At the end it leaves
// the array or object.
func (r *Reader) more() bool {
	if r.err != nil {
		return false
	}
	switch r.dec.PeekKind() {
	case ']', '}', 0:
		if _, err := r.dec.ReadToken(); err != nil {
			r.malformed(err)
		}
		return false
	}
	return true
}

// seen has a bit for each field that an object has. A null field counts as missing: its bit
// is 32 places higher.
type seen uint64

// next goes to the next field of the current object, and returns the index of its name in
// names. At the end of the object it leaves the object and returns -1. It skips a null
// field, unless it is body, which may be null. In a request, it notes an unknown or repeated
// field as wrong and skips it; in an answer, it skips unknown fields.
func (r *Reader) next(names []string, seen *seen) int {
	for r.more() {
		raw, ok := r.value()
		if !ok {
			return -1
		}
		name := r.unquote(raw)
		i := find(names, name, bits.Len32(uint32(*seen|*seen>>32)))
		switch {
		case i < 0 && r.lenient:
		case i < 0:
			r.unknown(name, names)
		case (*seen|*seen>>32)&(1<<i) != 0 && !r.lenient:
			r.Wrong("%s: given twice", names[i])
		case r.dec.PeekKind() == 'n' && names[i] != "body":
			*seen |= 1 << (32 + i)
		default:
			*seen |= 1 << i
			return i
		}
		r.skip()
	}
	return -1
}

// unknown notes a field with an unknown name as wrong.
func (r *Reader) unknown(name []byte, known []string) {
	if r.bad != nil {
		return
	}
	hint := "none is known here"
	if len(known) > 0 {
		hint = "known here: " + strings.Join(known, ", ")
	}
	r.wrongHint(hint, "%s: no such field", engine.Clip(string(name)))
}

// find returns the index of name in names, or -1. It looks from first on, and then before,
// since fields mostly come in order.
func find(names []string, name []byte, first int) int {
	for i := range names {
		if at := (first + i) % len(names); names[at] == string(name) {
			return at
		}
	}
	return -1
}

// all reads an array, and calls each to read an element. In a request it reads at most most
// elements and skips the others, so that they take no memory.
func (r *Reader) all(what string, most int, each func(n int)) {
	if !r.open(what, '[') {
		return
	}
	for n := 0; r.more(); n++ {
		if n < most || r.lenient {
			each(n)
			continue
		}
		if n == most {
			r.Wrong("%s: more than %d entries", what, most)
		}
		r.skip()
	}
}

func (r *Reader) skip() {
	if r.err != nil {
		return
	}
	if k := r.dec.PeekKind(); k == '[' || k == '{' {
		r.deep = r.deep || deep(r.data[r.dec.InputOffset():])
	}
	if err := r.dec.SkipValue(); err != nil {
		r.malformed(err)
	}
}

// value reads the next value and returns its text as it stands in data.
func (r *Reader) value() ([]byte, bool) {
	if k := r.dec.PeekKind(); (k == '[' || k == '{') && deep(r.data[r.dec.InputOffset():]) {
		// ReadValue would take a frame of the goroutine's stack for each level.
		start := r.dec.InputOffset()
		r.skip()
		end := r.dec.InputOffset()
		return bytes.TrimLeft(r.data[start:end:end], " \t\r\n:,"), r.err == nil
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.malformed(err)
		return nil, false
	}
	end := int(r.dec.InputOffset())
	return r.data[end-len(v) : end : end], true
}

var kindNames = map[jsontext.Kind]string{
	'n': "null", 'f': "a boolean", 't': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// mismatch notes a value of the wrong kind and skips it.
func (r *Reader) mismatch(name, want string, got jsontext.Kind, hint string) {
	if has, ok := kindNames[got]; ok {
		r.wrongHint(hint, "%s: must be %s, not %s", name, want, has)
	}
	r.skip()
}
