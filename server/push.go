package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callPush = &call{
	id: "pushMessage", group: groupPush, does: "Push a message",
	request: wire.NewMessage.Shape, answers: pushAnswers, fails: pushFails,
	example: json.RawMessage(`{"body":{"order":"42"},"delay":"30m","key":"42"}`),
}

// The answers of a push.
var (
	pushAnswers = []success{
		{http.StatusOK, "The message that has the key was kept or replaced.", wire.PushedAnswer.Ref()},
		{http.StatusCreated, "The message is new.", wire.PushedAnswer.Ref()},
	}
	pushFails = []error{engine.ErrExists, engine.ErrLeased, engine.ErrLeaseLost, engine.ErrLimit, engine.ErrNoSpace, engine.ErrUnsupported}
)

// pushOne pushes a message into the queue that the path names.
func (s *Server) pushOne(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var m engine.Message
	if wire.PushedMessage.Read(&in.Reader, &m).Has(wire.FieldQueue) {
		in.Wrong("queue: stands in the path; leave it out of the message")
	}
	m.Queue = x.path.Queue()
	return s.push(x, r, in, &m)
}

var callRearm = &call{
	id: "rearmMessage", group: groupPush, does: "Wind a message back, or create it",
	more:    "The message with this key gets the delay or due time of the request and keeps its body. When there is none it is created. key and on_conflict may be left out of the request.",
	request: wire.NewMessage.Shape, answers: pushAnswers, fails: pushFails,
	example: json.RawMessage(`{"body":{"connection":"7"},"delay":"30s"}`),
}

// rearm winds back the message with the key in the path, or creates it.
func (s *Server) rearm(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var m engine.Message
	got, key := wire.PushedMessage.Read(&in.Reader, &m), x.path.Key()
	switch {
	case got.Has(wire.FieldQueue):
		in.Wrong("queue: stands in the path; leave it out of the message")
	case got.Has(wire.FieldKey) && m.Key != key:
		in.Wrong("key: is not the one in the path; leave it out of the message")
	case got.Has(wire.FieldOnConflict) && m.OnConflict != engine.Rearm:
		in.Wrong("on_conflict: is rearm here; leave it out of the message")
	}
	m.Queue, m.Key, m.OnConflict = x.path.Queue(), key, engine.Rearm
	return s.push(x, r, in, &m)
}

func (s *Server) push(x *exchange, r *http.Request, in *input, m *engine.Message) error {
	if err := in.Err(); err != nil {
		return err
	}
	traceOf(r).into(m)
	ctx := r.Context()
	if x.conn != nil && s.c.Capabilities().Coalesce > 1 { // then a push has a time limit
		x.conn.brief.Store(r.TLS == nil)
		defer x.conn.brief.Store(false)
		ctx = x.conn.unwatched
	}
	p, err := s.c.PushDraft(ctx, *m)
	s.workers.replaced(m, err, x.began)
	if err != nil {
		// The engine may still use the body in the input's buffer, so it is not freed.
		return conflictError(err, p)
	}
	in.free()
	a := newAnswer()
	defer a.free()
	answered := pushed(&p)
	a.b = wire.AppendPushed(a.b, &answered)
	status := http.StatusOK
	if p.Outcome == engine.Created {
		status = http.StatusCreated
	}
	return s.send(x, a, status)
}

func pushed(p *tarry.Pushed) wire.Pushed {
	return wire.Pushed{
		PushResult: engine.PushResult{Outcome: p.Outcome, ID: p.ID, Due: p.Due, State: p.State, Ending: p.Ending, Ended: p.Ended, Err: p.Err},
		Queue:      p.Queue, Key: p.Key,
	}
}

// conflictError returns the error of a push, with the live message in its way, if any.
func conflictError(err error, p tarry.Pushed) error {
	f := *wire.Shown(err)
	if p.ID != 0 {
		live := pushed(&p)
		live.Outcome = 0
		f.Live = &live
		if f.Hint == "" {
			f.Hint = fmt.Sprintf("the live message has id %s, is %s and due %s", p.ID, p.State, p.Due.UTC().Format(wire.TimeFormat))
		}
	}
	return &f
}

var batches = sync.Pool{New: func() any { return new(wire.Batch) }}

func freeBatch(b *wire.Batch) {
	clear(b.All)
	b.All, b.Bad, b.Atomic = b.All[:0], nil, false
	batches.Put(b)
}

// itemSize is about how many bytes an item of a batch takes besides the request: as it is
// handed on, and in the answer.
const itemSize = 512

var callPushMany = &call{
	id: "pushMessages", group: groupPush, does: "Push many messages",
	more:    "A bad one fails alone, unless the request is atomic: then all are kept, or none is and the first error answers.",
	request: wire.NewBatch.Shape, answers: ok("What became of each.", wire.PushResults.Ref()), fails: pushFails,
	example: json.RawMessage(`{"messages":[{"queue":"a","body":1,"delay":"7d"},{"queue":"b","body_base64":"AAEC","content_type":"image/png"}]}`),
}

// pushMany pushes many messages: each separately, or all or none.
func (s *Server) pushMany(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	b := batches.Get().(*wire.Batch)
	wire.NewBatch.Read(&in.Reader, b)
	if err := in.Err(); err != nil {
		return err
	}
	if err := x.hold(len(b.All) * itemSize); err != nil {
		return err
	}
	x.sift(b)
	if t := traceOf(r); t != nil {
		for i := range b.All {
			t.into(&b.All[i])
		}
	}
	push := s.pushEach
	if b.Atomic {
		push = s.pushAtomic
	}
	out, err := push(r, b)
	if err != nil {
		return err
	}
	for i := range b.All {
		s.workers.replaced(&b.All[i], out[i].Err, x.began)
	}
	if r.Context().Err() == nil { // else the engine may still use the bodies
		in.free()
		freeBatch(b)
	}
	return s.answer(x, func(b []byte) []byte {
		results := wire.BeginResults(b)
		var p wire.Pushed
		for i := range out {
			p = pushed(&out[i])
			results.Pushed(&p)
		}
		return results.End()
	})
}

// sift marks the messages of a batch that the token must not push.
func (x *exchange) sift(b *wire.Batch) {
	for i := range b.All {
		if err := x.may(access.Push, b.All[i].Queue); err != nil && b.Err(i) == nil {
			b.Fail(i, err)
		}
	}
}

func (s *Server) pushAtomic(r *http.Request, b *wire.Batch) ([]tarry.Pushed, error) {
	for i, err := range b.Bad {
		if err != nil {
			f := *wire.Shown(err)
			f.Message = fmt.Sprintf("messages[%d]: %s", i, f.Message)
			return nil, &f
		}
	}
	return s.c.PushAtomic(r.Context(), b.All)
}

// pushEach pushes the good messages of a batch. A lone message goes as a single push, which
// engines may combine with others.
func (s *Server) pushEach(r *http.Request, b *wire.Batch) ([]tarry.Pushed, error) {
	if b.Bad == nil && len(b.All) == 1 {
		return s.pushSingle(r, b.All[0])
	}
	if b.Bad == nil {
		return s.c.PushMany(r.Context(), b.All)
	}
	good, errs := calls.Sift(b.All, b.Err)
	out := make([]tarry.Pushed, len(b.All))
	for i := range out {
		out[i].Err = errs[i]
	}
	if len(good.Items) == 0 {
		return out, nil
	}
	got, err := s.c.PushMany(r.Context(), good.Items)
	for j := range got {
		out[good.At(j)] = got[j]
	}
	return out, err
}

func (s *Server) pushSingle(r *http.Request, m engine.Message) ([]tarry.Pushed, error) {
	p, err := s.c.PushDraft(r.Context(), m)
	switch engine.Code(err) {
	case "unavailable", "internal":
		return nil, err // the whole call failed, not just the message
	}
	p.Err = err
	return []tarry.Pushed{p}, nil
}
