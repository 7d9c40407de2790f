package httpengine

import (
	"context"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Settle makes as few requests as the server's limits allow.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	return inParts(ctx, e, "settle", s, func(rest []engine.Settlement) (int, []engine.Settled, error) {
		part := rest[:min(len(rest), e.limits.MaxBatch)]
		got, err := e.settle(ctx, part)
		return len(part), got, err
	}, func(err error) engine.Settled { return engine.Settled{Err: err} })
}

// settle makes one request within a call that has begun.
func (e *Engine) settle(ctx context.Context, part []engine.Settlement) ([]engine.Settled, error) {
	body := wire.Settling.Append(make([]byte, 0, 64+128*len(part)), &wire.Items[engine.Settlement]{All: part})
	out, err := askEach(ctx, e, call{op: "settle", method: http.MethodPost, path: "/v1/settle", body: body}, len(part), wire.SettleResult,
		func(_ int, s *wire.Settled) engine.Settled {
			s.Err = failed(s.Err, "settle", engine.Ref{})
			return s.Settled
		})
	if err != nil {
		return nil, err
	}
	e.watch.settled()
	return out, nil
}
