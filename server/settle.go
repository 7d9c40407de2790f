package server

import (
	"encoding/json"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/wire"
)

var callSettle = &call{
	id: "settleMessages", group: groupWork, does: "Settle leases, or extend them",
	request: wire.Settling.Shape, answers: ok("What became of each.", wire.SettleResults.Ref()), fails: []error{engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"settlements":[{"lease":"a1b2c3","do":"ack"},{"lease":"d4e5f6","do":"retry","delay":"15s","reason":"no answer"}]}`),
}

// settle ends or extends leases, each separately.
func (s *Server) settle(x *exchange, r *http.Request) error {
	asked, err := decode(x, r, wire.Settling)
	if err != nil {
		return err
	}
	all := asked.All
	if err := x.hold(len(all) * itemSize); err != nil {
		return err
	}
	good, errs := calls.Sift(all, asked.Err)
	got, err := s.c.Settle(r.Context(), good.Items)
	if err != nil {
		return err
	}
	out := make([]engine.Settled, len(all))
	for i, err := range errs {
		out[i].Err = err
	}
	for j, g := range got {
		out[good.At(j)] = g
	}
	s.workers.settled(all, out, x.began)
	return s.answer(x, func(b []byte) []byte {
		results := wire.BeginResults(b)
		for i := range out {
			results.Settled(all[i].Token, &out[i])
		}
		return results.End()
	})
}
