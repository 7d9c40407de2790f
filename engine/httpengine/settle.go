package httpengine

import (
	"context"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Settle makes as few requests as the server's limits allow.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if len(s) == 0 {
		return nil, e.emptyCall(ctx, "settle")
	}
	out := make([]engine.Settled, 0, len(s))
	for part := range slices.Chunk(s, e.limits.MaxBatch) {
		got, err := e.begun(ctx, part)
		if err != nil {
			if len(part) == len(s) {
				return nil, err
			}
			got = slices.Repeat([]engine.Settled{{Err: err}}, len(part))
		}
		out = append(out, got...)
	}
	return out, nil
}

func (e *Engine) begun(ctx context.Context, part []engine.Settlement) ([]engine.Settled, error) {
	if err := e.calls.Enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	return e.settle(ctx, part)
}

// settle makes one request within a call that has begun already.
func (e *Engine) settle(ctx context.Context, part []engine.Settlement) ([]engine.Settled, error) {
	body := wire.Settling.Append(make([]byte, 0, 64+128*len(part)), &wire.Items[engine.Settlement]{All: part})
	out, err := askEach(ctx, e, call{op: "settle", method: http.MethodPost, path: "/v1/settle", body: body}, len(part), wire.SettleResult,
		func(_ int, s *engine.Settled) engine.Settled {
			s.Err = failed(s.Err, "settle", engine.Ref{})
			return *s
		})
	if err != nil {
		return nil, err
	}
	e.watch.settled()
	return out, nil
}
