package token

import (
	"cmp"
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
)

// Place is a place in a list of messages: when the state of one ends, in Unix
// milliseconds, and its id.
type Place struct {
	At int64
	ID engine.ID
}

// Compare orders places as lists do.
func (p Place) Compare(o Place) int { return cmp.Or(cmp.Compare(p.At, o.At), cmp.Compare(p.ID, o.ID)) }

const placeSize = 8 + 8

// Cursor returns the form for callers, Page.Next.
func (p Place) Cursor() string {
	var raw [placeSize]byte
	binary.BigEndian.PutUint64(raw[0:], uint64(p.At))
	binary.BigEndian.PutUint64(raw[8:], uint64(p.ID))
	return coding.EncodeToString(raw[:])
}

// After returns the place behind which a page begins; nil: at the start. ErrInvalid
// for what no page ended with.
func After(q *engine.ListQuery) (*Place, error) {
	if q.After == "" {
		return nil, nil
	}
	var raw [placeSize]byte
	if !decode(raw[:], q.After) {
		return nil, &engine.Error{Op: "list", Queue: q.Queue, Err: engine.ErrInvalid, Hint: "after is the next of the page before"}
	}
	return &Place{int64(binary.BigEndian.Uint64(raw[0:])), engine.ID(binary.BigEndian.Uint64(raw[8:]))}, nil
}
