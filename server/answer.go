package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// answer is the JSON of one answer as it is being written.
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

// jsonType is shared by all answers: headers hold slices.
var jsonType = []string{"application/json"}

// saysLength is the size from which an answer states its length. net/http buffers a shorter
// one until the handler returns, and states the length itself at less cost.
const saysLength = 1 << 10

// write sends the answer as a whole. One that is flushed says its length in any case.
func (a *answer) write(x *exchange, status int, flushed bool) error {
	x.dropHeaders()
	h := x.Header()
	h["Content-Type"] = jsonType
	if flushed || len(a.b) >= saysLength {
		h["Content-Length"] = []string{strconv.Itoa(len(a.b))}
	} else {
		x.ended = time.Now() // net/http writes it without waiting for the client
	}
	x.WriteHeader(status)
	_, err := x.Write(a.b)
	return err
}

// send writes an answer whose loss needs no repair. A GET may be refused for want of
// memory; a change that was made is answered in any case.
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

// counted answers with a count.
func (s *Server) counted(x *exchange, n int64, err error) error {
	x.note("count", n)
	if err != nil {
		return err
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendCount(b, n) })
}

// wantBodies is how the client wants the bodies of messages.
func wantBodies(r *http.Request) wire.Bodies {
	if r.Header.Get(wire.ExactHeader) == "true" {
		return wire.Exactly
	}
	return wire.AsJSON
}
