package wire

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// Results writes an answer with one result for each item of a request.
type Results struct {
	B         []byte
	n, failed int
}

// BeginResults returns Results that append an answer to b.
func BeginResults(b []byte) Results { return Results{B: append(b, `{"results":[`...)} }

// End returns the answer, with how many of its items failed.
func (r *Results) End() []byte {
	return append(appendInt(r.B, `],"failed":`, int64(r.failed)), '}')
}

func (r *Results) begin() {
	if r.n++; r.n > 1 {
		r.B = append(r.B, ',')
	}
}

func (r *Results) ok(err error) {
	if err == nil {
		r.B = append(r.B, `,"ok":true`...)
		return
	}
	r.failed++
	r.B = appendError(append(r.B, `,"ok":false,`...), Shown(err))
}

// Pushed appends the result of a push: what it did, or p.Err. If p has an ID beside Err, it
// also appends the existing message that the push conflicts with.
func (r *Results) Pushed(p *Pushed) {
	r.begin()
	r.B = append(r.B, '{')
	if p.Err != nil {
		r.failed++
		r.B = appendError(r.B, Shown(p.Err))
		if p.ID != 0 {
			live := *p
			live.Outcome = 0
			r.B = appendPushed(append(r.B, ','), &live)
		}
	} else {
		r.B = appendPushed(r.B, p)
	}
	r.B = append(r.B, '}')
}

// Cancelled appends the result for a message to cancel.
func (r *Results) Cancelled(ref engine.Ref, err error) {
	r.begin()
	r.B = appendText(r.B, `{"queue":`, clipLong(ref.Queue))
	if ref.ID != 0 {
		r.B = appendID(append(r.B, `,"id":`...), ref.ID)
	} else {
		r.B = appendText(r.B, `,"key":`, clipLong(ref.Key))
	}
	r.ok(err)
	r.B = append(r.B, '}')
}

// anyResults is the shape of an answer with results, without the other fields.
var anyResults = answered("", "", must("results", schema.Array(schema.Object{}, 0), ""))

// Results reads an answer with one result for each item. It calls each to read a result.
func (r *Reader) Results(each func()) {
	r.fields("answer", anyResults, func(int) { r.all("results", 0, func(int) { each() }) })
}

// batch reads a request of one field, an array whose elements fail separately.
func (r *Reader) batch(s *Shape, each func()) {
	if r.fields("request", s, func(int) { r.items(s.names[0], each) }) == 0 {
		r.Wrong("%s: is missing", s.names[0])
	}
	r.end()
}

// wrong returns the error of the element that was just read, or nil.
func (r *Reader) wrong() error {
	if r.bad == nil {
		return nil
	}
	return r.bad
}
