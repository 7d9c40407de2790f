package httpengine

import (
	"context"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

var actions = [...]string{
	engine.Ack: "ack", engine.Retry: "retry", engine.Snooze: "snooze",
	engine.Release: "release", engine.Bury: "bury", engine.Extend: "extend",
}

// Settle settles in requests of as many as the server takes.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if len(s) == 0 {
		return nil, e.idle(ctx, "settle")
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

// settle settles in one request of a call that has begun.
func (e *Engine) settle(ctx context.Context, part []engine.Settlement) ([]engine.Settled, error) {
	body := make([]byte, 0, 64+128*len(part))
	body = append(body, `{"settlements":[`...)
	for i := range part {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendSettlement(body, &part[i])
	}
	b, err := e.roundTrip(ctx, call{op: "settle", method: http.MethodPost, path: "/v1/settle", body: append(body, "]}"...)})
	if err != nil {
		return nil, err
	}
	defer b.free()
	out := make([]engine.Settled, 0, len(part))
	err = readResults(b.b, func(c *cursor) {
		var s engine.Settled
		c.object(func(name string) {
			switch name {
			case "state":
				s.State = c.state()
			case "until":
				s.Until = c.time()
			case "error":
				s.Err = c.wrong().err("settle", engine.Ref{})
			default:
				c.skip()
			}
		})
		out = append(out, s)
	})
	if err == nil && len(out) != len(part) {
		err = problem("%d results for %d settlements", len(out), len(part))
	}
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(part, func(s engine.Settlement) bool { return s.Do != engine.Ack }) {
		e.watch.settled()
	}
	return out, nil
}

func appendSettlement(b []byte, s *engine.Settlement) []byte {
	b = append(b, `{"lease":`...)
	if s.Token == "" {
		b = append(b, `"-"`...) // names no lease either, and does not count as missing
	} else {
		b = appendString(b, s.Token)
	}
	b = append(b, `,"do":"`...)
	if int(s.Do) < len(actions) {
		b = append(b, actions[s.Do]...)
	}
	b = append(b, '"')
	if s.When != nil && (s.Do == engine.Retry || s.Do == engine.Snooze) {
		before := len(b)
		if b = appendWhen(b, *s.When); len(b) == before {
			b = append(b, `,"delay":"0s"`...)
		}
	}
	if s.TTR > 0 && s.Do == engine.Extend {
		b = appendDuration(append(b, `,"ttr":`...), s.TTR)
	}
	if s.Reason != "" && (s.Do == engine.Retry || s.Do == engine.Bury) {
		b = append(b, `,"reason":`...)
		b = appendString(b, s.Reason)
	}
	return append(b, '}')
}
