package server

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/tarryhq/tarry/internal/wire"
)

// answer holds the JSON of one answer while it is written.
type answer struct{ b []byte }

var answers = sync.Pool{New: func() any { return &answer{make([]byte, 0, 4<<10)} }}

func newAnswer() *answer {
	a := answers.Get().(*answer)
	a.b = a.b[:0]
	return a
}

func (a *answer) free() {
	if cap(a.b) <= pooledAnswer {
		answers.Put(a)
	}
}

// jsonType is shared by all answers to save an allocation, since header values are slices.
var jsonType = []string{"application/json"}

// minLengthHeader is the size from which an answer states its own length. net/http buffers a
// shorter answer until the handler returns, and then states the length at less cost.
const minLengthHeader = 1 << 10

// write sends the whole answer. An answer to be flushed always states its length.
func (a *answer) write(x *exchange, status int, flushed bool) error {
	x.dropHeaders()
	h := x.Header()
	h["Content-Type"] = jsonType
	if flushed || len(a.b) >= minLengthHeader {
		h["Content-Length"] = []string{strconv.Itoa(len(a.b))}
	}
	x.WriteHeader(status)
	_, err := x.Write(a.b)
	return err
}

// send writes an answer that may be lost: nothing need be undone. A GET may be refused when
// memory is short. A change has already been made, so it is always answered.
func (s *Server) send(x *exchange, a *answer, status int) error {
	if err := x.hold(cap(a.b)); err != nil && x.get {
		return err
	}
	_ = a.write(x, status, false) // on an error the client is gone
	return nil
}

// answer sends what write appends.
func (s *Server) answer(x *exchange, write func(b []byte) []byte) error {
	a := newAnswer()
	defer a.free()
	a.b = write(a.b)
	return s.send(x, a, http.StatusOK)
}

// respond answers with an object.
func respond[T any](x *exchange, o *wire.Object[T], v *T) error {
	return x.s.answer(x, func(b []byte) []byte { return o.Append(b, v) })
}

// counted answers with a count.
func (s *Server) counted(x *exchange, n int64, err error) error {
	x.note("count", n)
	if err != nil {
		return err
	}
	return respond(x, wire.Counted, &wire.Swept{Count: n})
}

// wantBodies returns the form in which the client wants message bodies.
func wantBodies(r *http.Request) wire.Bodies {
	if r.Header.Get(wire.ExactHeader) == "true" {
		return wire.Exactly
	}
	return wire.AsJSON
}
