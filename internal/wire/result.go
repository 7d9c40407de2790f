package wire

import (
	"strconv"

	"github.com/tarryhq/tarry/engine"
)

// Items are the items of a request, of which each may fail alone.
type Items[T any] struct {
	All []T
	Bad []error // the errors of the items up to the last that failed; nil: that item has not
}

// Err returns the error of an item; nil: it has not failed.
func (t *Items[T]) Err(n int) error {
	if n < len(t.Bad) {
		return t.Bad[n]
	}
	return nil
}

// Fail sets the error of an item.
func (t *Items[T]) Fail(n int, err error) {
	if n >= len(t.Bad) {
		t.Bad = append(t.Bad, make([]error, n+1-len(t.Bad))...)
	}
	t.Bad[n] = err
}

// Results writes an answer with one result for each item of a request.
type Results struct {
	B         []byte
	n, failed int
	settled   Settled // the last, here to save allocations
}

// BeginResults returns Results that append an answer to b.
func BeginResults(b []byte) Results { return Results{B: append(b, `{"results":[`...)} }

// End returns the answer, with how many of its items failed.
func (r *Results) End() []byte {
	return append(strconv.AppendInt(append(r.B, `],"failed":`...), int64(r.failed), 10), '}')
}

func (r *Results) begin() {
	if r.n++; r.n > 1 {
		r.B = append(r.B, ',')
	}
}

// Pushed appends the result of a push: what it did, or p.Err. If p has an ID beside Err, it
// also appends the existing message that the push conflicts with.
func (r *Results) Pushed(p *Pushed) {
	r.begin()
	if p.Err == nil {
		r.B = pushedShape.Append(r.B, p)
		return
	}
	r.failed++
	r.B = pushFailed.Append(r.B, p)
}

// Cancelled appends the result for a message to cancel.
func (r *Results) Cancelled(ref engine.Ref, err error) {
	r.begin()
	if err != nil {
		r.failed++
		err = Shown(err)
	}
	ref.Queue, ref.Key = clipLong(ref.Queue), clipLong(ref.Key)
	r.B = CancelResult.Append(r.B, &Cancelled{ref, err == nil, err})
}

// Settled appends the result of a settlement.
func (r *Results) Settled(token string, s *engine.Settled) {
	r.begin()
	if s.Err != nil {
		r.failed++
	}
	r.settled = Settled{clipLong(token), *s}
	r.B = SettleResult.Append(r.B, &r.settled)
}

// ReadResults reads an answer with one result for each item of a request. It calls each with
// every result, which is valid until each returns.
func ReadResults[T any](data []byte, o *Object[T], each func(result *T)) error {
	return ReadAnswer(data, func(r *Reader) {
		result := new(T)
		r.each("results", func() {
			*result = *new(T)
			o.read(r, "result", result)
			each(result)
		})
	})
}

// each reads an answer, and calls one to read each element of the array in one of its fields.
func (r *Reader) each(field string, one func()) {
	if !r.open("answer", '{') {
		return
	}
	var seen seen
	for names := []string{field}; r.next(names, &seen) >= 0; {
		r.all(field, 0, func(int) { one() })
	}
}
