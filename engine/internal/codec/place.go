package codec

import (
	"cmp"
	"encoding/binary"
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Place is a place in a list of messages: when the state of a message ends, in Unix
// milliseconds, and its id.
type Place struct {
	At int64
	ID engine.ID
}

// Compare orders places as lists do.
func (p Place) Compare(o Place) int { return cmp.Or(cmp.Compare(p.At, o.At), cmp.Compare(p.ID, o.ID)) }

const placeSize = 1 + 8 + 8

// listKind is the first byte of a cursor: the state and order of its list.
func listKind(q *engine.ListQuery) byte {
	c := byte(q.State) << 1
	if q.Newest {
		c |= 1
	}
	return c
}

// Cursor returns the Page.Next of a page that ends with p.
func (p Place) Cursor(q *engine.ListQuery) string {
	raw := [placeSize]byte{listKind(q)}
	binary.BigEndian.PutUint64(raw[1:], uint64(p.At))
	binary.BigEndian.PutUint64(raw[9:], uint64(p.ID))
	return textCoding.EncodeToString(raw[:])
}

// PlaceAfter returns the place after which a page begins; nil: at the start. It fails with
// ErrInvalid unless the cursor is of such a list.
func PlaceAfter(q *engine.ListQuery) (*Place, error) {
	if q.After == "" {
		return nil, nil
	}
	var raw [placeSize]byte
	if !decodeText(raw[:], q.After) || raw[0] != listKind(q) {
		return nil, &engine.Error{Op: "list", Queue: q.Queue, Err: engine.ErrInvalid, Hint: "after must be the next of an earlier page, with the same state and order"}
	}
	return &Place{int64(binary.BigEndian.Uint64(raw[1:])), engine.ID(binary.BigEndian.Uint64(raw[9:]))}, nil
}

// Span is the part of a list still to be shown: from Low, and before High.
type Span struct{ Low, High Place }

// WholeList is the span of a whole list.
var WholeList = Span{Place{At: math.MinInt64}, Place{At: math.MaxInt64}}

// SpanOf returns the span of a query: between its From and To and, in its direction, after
// its After. It fails as PlaceAfter does.
func SpanOf(q *engine.ListQuery) (Span, error) {
	s := WholeList
	if !q.From.IsZero() {
		s.Low.At = ceilMilli(q.From)
	}
	if !q.To.IsZero() {
		s.High.At = ceilMilli(q.To)
	}
	after, err := PlaceAfter(q)
	switch {
	case after == nil:
	case q.Newest && after.Compare(s.High) < 0:
		s.High = *after
	case !q.Newest && after.Compare(s.Low) >= 0:
		s.Low = Place{after.At, after.ID + 1}
	}
	return s, err
}

// Holds reports whether a place is in the span.
func (s Span) Holds(p Place) bool { return p.Compare(s.Low) >= 0 && p.Compare(s.High) < 0 }

// ceilMilli returns the first whole millisecond at or after t. No place is between the two.
func ceilMilli(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
