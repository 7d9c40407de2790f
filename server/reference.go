package server

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// refWithState returns the message that the path names, with the state that the query requires.
func (x *exchange) refWithState(r *http.Request) (engine.Ref, error) {
	ref, err := x.path.Ref()
	if err == nil {
		ref.IfState, err = wire.RefQuery.ParseQuery(r.URL.RawQuery)
	}
	return ref, err
}

var callGet = &call{
	id: "getMessage", group: groupMessage, does: "Look a message up", exact: true,
	more:    "By key, the live one; else the one whose key is remembered; else that which died or ended last and is listed. By id, any that is live or listed.",
	answers: ok("The message.", wire.FoundMessage), fails: []error{engine.ErrNotFound, engine.ErrUnsupported},
}

func (s *Server) get(x *exchange, r *http.Request) error {
	ref, err := x.path.Ref()
	if err != nil {
		return err
	}
	m, err := s.c.Get(r.Context(), ref)
	if err != nil {
		return err
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendInfo(b, &engine.Lease{Info: m}, wantBodies(r)) })
}

var callCancel = &call{
	id: "cancelMessage", group: groupMessage, does: "Cancel a message",
	more:  "Once this is answered, no handler starts for it. By id, a dead message can be removed too.",
	query: wire.RefQuery.Shape, answers: []success{{http.StatusNoContent, "It is gone.", nil}}, fails: changeFails,
}

// changeFails are the errors of calls that change a message.
var changeFails = []error{engine.ErrNotFound, engine.ErrLeased, engine.ErrStale, engine.ErrNoSpace, engine.ErrUnsupported}

func (s *Server) cancel(x *exchange, r *http.Request) error {
	ref, err := x.refWithState(r)
	if err != nil {
		return err
	}
	ref.By = x.by()
	if err := s.c.Cancel(r.Context(), ref); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// by is the caller of the request: the name of its token, or its address.
func (x *exchange) by() string {
	if x.token != nil {
		return x.token.Name
	}
	address := remoteHost(x.request)
	if engine.CheckWorker("cancel", "", address) != nil {
		return ""
	}
	return address
}

var callReschedule = &call{
	id: "rescheduleMessage", group: groupMessage, does: "Move a message to another time",
	query: wire.RefQuery.Shape, request: wire.Rescheduling.Shape, answers: ok("The message, without its body.", wire.Kept.Ref()), fails: changeFails,
	example: json.RawMessage(`{"delay":"1h"}`),
}

func (s *Server) reschedule(x *exchange, r *http.Request) error {
	ref, err := x.refWithState(r)
	if err != nil {
		return err
	}
	when, err := decode(x, r, wire.Rescheduling)
	if err != nil {
		return err
	}
	due := tarry.In(when.In)
	if !when.At.IsZero() {
		due = tarry.At(when.At)
	}
	m, err := s.c.Reschedule(r.Context(), ref, due)
	if err != nil {
		return err
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendInfo(b, &engine.Lease{Info: m}, wire.NoBodies) })
}

var callCancelMany = &call{
	id: "cancelMessages", group: groupMessage, does: "Cancel many messages",
	request: wire.Cancelling.Shape, answers: ok("What became of each.", wire.CancelResults.Ref()), fails: []error{engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"refs":[{"queue":"order.unpaid","key":"42"},{"queue":"order.unpaid","id":"7","if_state":"scheduled"}]}`),
}

// cancelMany cancels messages of any queues, each separately.
func (s *Server) cancelMany(x *exchange, r *http.Request) error {
	refs, err := decode(x, r, wire.Cancelling)
	if err != nil {
		return err
	}
	if err := x.hold(len(refs.All) * itemSize); err != nil {
		return err
	}
	by := x.by()
	for i := range refs.All {
		refs.All[i].By = by
	}
	good, errs := calls.Sift(refs.All, func(i int) error {
		return cmp.Or(refs.Err(i), x.may(access.Push|access.Operate, refs.All[i].Queue))
	})
	got, err := s.c.CancelMany(r.Context(), good.Items)
	if err != nil {
		return err
	}
	if errs == nil {
		errs = make([]error, len(refs.All))
	}
	for j, c := range got {
		errs[good.At(j)] = c.Err
	}
	x.noteCancelled(refs.All, errs)
	return s.answer(x, func(b []byte) []byte {
		results := wire.BeginResults(b)
		for i, err := range errs {
			results.Cancelled(refs.All[i], err)
		}
		return results.End()
	})
}
