package server

import (
	"net/http"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/sift"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// conditional returns the message that the path names, and in which state the query
// wants it to be.
func (x *exchange) conditional(r *http.Request) (engine.Ref, error) {
	ref, err := x.path.Ref()
	if err == nil {
		ref.IfState, err = wire.ParseRefQuery(r.URL.RawQuery)
	}
	return ref, err
}

func (s *Server) get(x *exchange, r *http.Request) error {
	ref, err := x.path.Ref()
	if err != nil {
		return err
	}
	if _, err := wire.Query(r.URL.RawQuery); err != nil {
		return err
	}
	m, err := s.c.Get(r.Context(), ref)
	if err != nil {
		return err
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendInfo(b, &m, "", wantBodies(r)) })
}

func (s *Server) cancel(x *exchange, r *http.Request) error {
	ref, err := x.conditional(r)
	if err != nil {
		return err
	}
	if err := s.c.Cancel(r.Context(), ref); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) reschedule(x *exchange, r *http.Request) error {
	ref, err := x.conditional(r)
	if err != nil {
		return err
	}
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	when := in.Reschedule()
	if err := in.Err(); err != nil {
		return err
	}
	in.free()
	due := tarry.In(when.In)
	if !when.At.IsZero() {
		due = tarry.At(when.At)
	}
	m, err := s.c.Reschedule(r.Context(), ref, due)
	if err != nil {
		return err
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendInfo(b, &m, "", wire.NoBodies) })
}

// cancelMany cancels messages of any queues, each alone.
func (s *Server) cancelMany(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	refs, bad := in.Cancel()
	if err := in.Err(); err != nil {
		return err
	}
	if err := x.hold(len(refs) * itemSize); err != nil {
		return err
	}
	in.free()
	for i := range refs {
		if bad[i] == nil {
			bad[i] = x.may(access.Push|access.Operate, refs[i].Queue)
		}
	}
	good, errs := sift.Items(refs, func(i int) error { return bad[i] })
	got, err := s.c.CancelMany(r.Context(), good.Items)
	if err != nil {
		return err
	}
	if errs == nil {
		errs = make([]error, len(refs))
	}
	for j, c := range got {
		errs[good.At(j)] = c.Err
	}
	x.noteCancelled(refs, errs)
	a := newAnswer()
	defer a.free()
	results := wire.BeginResults(a.b)
	for i, err := range errs {
		results.Cancelled(refs[i], err)
	}
	a.b = results.End()
	return s.send(x, a, http.StatusOK)
}
