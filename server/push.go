package server

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// pushOne pushes the message of a request into the queue of the path.
func (s *Server) pushOne(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var m engine.Message
	if in.message("message", &m).has(fieldQueue) {
		in.wrong("queue: stands in the path; leave it out of the message")
	}
	m.Queue = value(r, "queue")
	return s.push(x, r, in, m)
}

// rearm winds the message with the key of the path back, or creates it.
func (s *Server) rearm(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var m engine.Message
	got := in.message("message", &m)
	key := value(r, "key")
	switch {
	case got.has(fieldQueue):
		in.wrong("queue: stands in the path; leave it out of the message")
	case got.has(fieldKey) && m.Key != key:
		in.wrong("key: is not the one in the path; leave it out of the message")
	case got.has(fieldOnConflict) && m.OnConflict != engine.Rearm:
		in.wrong("on_conflict: is rearm here; leave it out of the message")
	}
	m.Queue, m.Key, m.OnConflict = value(r, "queue"), key, engine.Rearm
	return s.push(x, r, in, m)
}

func (s *Server) push(x *exchange, r *http.Request, in *input, m engine.Message) error {
	in.end()
	if err := in.failed(); err != nil {
		return err
	}
	p, err := s.c.PushMessage(r.Context(), m)
	if err != nil {
		// The engine may still be at it, with the body in the input's buffer.
		f := *toFailure(err)
		if p.ID != 0 {
			live := p // so that p needs no memory of its own when all is well
			live.Outcome = 0
			f.live = &live
			if f.hint == "" {
				f.hint = inTheWay(&live)
			}
		}
		return &f
	}
	in.free()
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, '{')
	a.b = appendPushed(a.b, &p)
	a.b = append(a.b, '}')
	return s.send(x, a, pushStatus(p.Outcome))
}

func pushStatus(o engine.Outcome) int {
	if o == engine.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// inTheWay describes the live message that a push met.
func inTheWay(p *tarry.Pushed) string {
	return fmt.Sprintf("the live message has id %s, is %s and due %s", p.ID, p.State, p.Due.UTC().Format(timeFormat))
}

// batch is the messages of one request.
type batch struct {
	msgs  []engine.Message
	wrong []*failure // of each message, once any is wrong
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func (b *batch) free() {
	clear(b.msgs)
	b.msgs, b.wrong = b.msgs[:0], nil
	batches.Put(b)
}

// itemSize is about how many bytes an item of a batch takes beside the request: as it
// is handed on, and in the answer.
const itemSize = 512

var batchFields = []string{"messages", "atomic"}

// pushMany pushes many messages, each alone or all as one.
func (s *Server) pushMany(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	b := batches.Get().(*batch)
	b.msgs = b.msgs[:0]
	atomic := in.batch(b)
	if err := in.failed(); err != nil {
		return err
	}
	if err := x.hold(len(b.msgs) * itemSize); err != nil {
		return err
	}
	var out []tarry.Pushed
	var errs []error
	switch {
	case atomic:
		for i, f := range b.wrong {
			if f != nil {
				g := *f
				g.message = fmt.Sprintf("messages[%d]: %s", i, f.message)
				return &g
			}
		}
		out, err = s.c.PushAtomic(r.Context(), b.msgs)
	case b.wrong != nil:
		out, errs, err = s.pushGood(r, b)
	case len(b.msgs) == 1:
		out, errs, err = s.pushSingle(r, b)
	default:
		out, errs, err = s.c.PushMany(r.Context(), b.msgs)
	}
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.pushed(out, errs)
	if r.Context().Err() == nil {
		in.free()
		b.free()
	}
	return s.send(x, a, http.StatusOK)
}

// pushSingle pushes a batch of one as a single call, which engines may put together
// with others.
func (s *Server) pushSingle(r *http.Request, b *batch) ([]tarry.Pushed, []error, error) {
	p, err := s.c.PushMessage(r.Context(), b.msgs[0])
	switch engine.Code(err) {
	case "":
		return []tarry.Pushed{p}, nil, nil
	case "unavailable", "internal":
		return nil, nil, err // the call failed, not the message
	}
	return []tarry.Pushed{p}, []error{err}, nil
}

// pushGood pushes those messages of a batch that could be read.
func (s *Server) pushGood(r *http.Request, b *batch) ([]tarry.Pushed, []error, error) {
	var good []engine.Message
	var at []int
	out, errs := make([]tarry.Pushed, len(b.msgs)), make([]error, len(b.msgs))
	for i, f := range b.wrong {
		if f != nil {
			errs[i] = f
			out[i] = tarry.Pushed{Queue: clip(b.msgs[i].Queue), Key: clip(b.msgs[i].Key)}
			continue
		}
		good, at = append(good, b.msgs[i]), append(at, i)
	}
	if len(good) == 0 {
		return out, errs, nil
	}
	got, gotErrs, err := s.c.PushMany(r.Context(), good)
	if err != nil {
		return nil, nil, err
	}
	for j, i := range at {
		out[i] = got[j]
		if gotErrs != nil {
			errs[i] = gotErrs[j]
		}
	}
	return out, errs, nil
}

// batch reads the messages of a request.
func (in *input) batch(b *batch) (atomic bool) {
	var seen uint32
	if in.open("request", '{') {
		for {
			switch in.next(batchFields, &seen) {
			case 0:
				in.messages(b)
				continue
			case 1:
				atomic = in.flag("atomic")
				continue
			}
			break
		}
		if seen&1 == 0 {
			in.wrong("messages: is missing")
		}
	}
	in.end()
	return atomic
}

func (in *input) messages(b *batch) {
	if !in.open("messages", '[') {
		return
	}
	outside := in.bad
	for in.more() {
		if len(b.msgs) == tarry.MaxBatch {
			in.err = refusal(http.StatusRequestEntityTooLarge, "too_large",
				"more than "+strconv.Itoa(tarry.MaxBatch)+" messages in one request", "send them in several requests")
			return
		}
		i := len(b.msgs)
		b.msgs = append(b.msgs, engine.Message{})
		in.bad = nil
		got := in.message("message", &b.msgs[i])
		if in.bad == nil && in.err == nil && !got.has(fieldQueue) {
			in.wrong("queue: is missing")
		}
		if in.bad != nil && b.wrong == nil {
			b.wrong = make([]*failure, i, i+1)
		}
		if b.wrong != nil {
			b.wrong = append(b.wrong, in.bad)
		}
	}
	in.bad = outside
}

// pushed writes the results of a batch.
func (a *answer) pushed(out []tarry.Pushed, errs []error) {
	a.b = append(a.b, `{"results":[`...)
	failed := 0
	for i := range out {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = append(a.b, '{')
		if errs == nil || errs[i] == nil {
			a.b = appendPushed(a.b, &out[i])
		} else {
			failed++
			a.b = appendError(a.b, toFailure(errs[i]))
			if out[i].ID != 0 {
				// What is in the way of a push by key.
				out[i].Outcome = 0
				a.b = append(a.b, ',')
				a.b = appendPushed(a.b, &out[i])
			}
		}
		a.b = append(a.b, '}')
	}
	a.b = append(a.b, `],"failed":`...)
	a.b = strconv.AppendInt(a.b, int64(failed), 10)
	a.b = append(a.b, '}')
}
