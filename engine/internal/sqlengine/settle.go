package sqlengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Settle ends or extends leases, in one transaction.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if err := e.calls.Enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	settled, err := gather(ctx, e, s, settleNeeds, func(some []engine.Settlement, timeout LockTimeout) ([]engine.Settled, error) {
		return e.settle(ctx, some, timeout)
	}, func(_ *engine.Settlement, err error) engine.Settled {
		return engine.Settled{Err: engine.Refuse("settle", engine.Ref{}, err)}
	})
	if err == nil && e.cfg.later == nil { // else the transaction may still be rolled back
		e.held.Settled(s, settled)
	}
	return settled, err
}

// settleNeeds returns what a settlement needs that others may have locked.
func settleNeeds(s *engine.Settlement) lockKey {
	t, _ := codec.ParseToken(s.Token)
	return lockKey{id: t.ID}
}

// settle is Settle within a call already begun.
func (e *Engine) settle(ctx context.Context, s []engine.Settlement, timeout LockTimeout) ([]engine.Settled, error) {
	settled := make([]engine.Settled, len(s))
	tokens := make([]codec.Token, len(s))
	var ids []engine.ID
	var queues []int64
	for i := range s {
		t, ok := codec.ParseToken(s[i].Token)
		if err := s[i].Check(); err != nil {
			settled[i].Err = err
		} else if !ok || int64(t.Queue) <= 0 || int64(t.ID) <= 0 {
			settled[i].Err = lost("", 0)
		} else {
			tokens[i] = t
			ids, queues = append(ids, t.ID), append(queues, int64(t.Queue))
		}
	}
	if len(ids) == 0 {
		return settled, nil
	}
	ids, queues = sorted(ids), sorted(queues)
	err := e.do(ctx, "settle", queues, First{IDs: ids, Timeout: timeout}, nil, func(w *work) error {
		var names []Name // of messages that died by a lapse
		for _, x := range w.order {
			if x.Kind == Dead && x.Nonce != nil && x.Key != "" {
				names = append(names, Name{x.Queue, x.Key})
			}
		}
		if err := w.find(names); err != nil {
			return err
		}
		for i := range s {
			if err := w.boundDead(); err != nil {
				return err
			}
			if t := tokens[i]; t.ID != 0 {
				settled[i] = w.settle(t, &s[i])
				settled[i].Queue = w.name(int64(t.Queue))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return settled, nil
}

// sorted returns the distinct values in order.
func sorted[T ~int64 | ~uint64](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}

func lost(queue string, id engine.ID) error {
	return engine.Refuse("settle", engine.Ref{Queue: queue, ID: id}, engine.ErrLeaseLost)
}

// name returns the name of a queue; "" for a number from a token that is no queue's.
func (w *work) name(num int64) string {
	if q := w.queues[num]; q != nil {
		return q.Name
	}
	return ""
}

// settle carries out a settlement. If its lease has lapsed, the message is ready or dead. The
// lease is lost if the message is dead and another one holds its key, because it cannot
// become live again.
func (w *work) settle(t codec.Token, s *engine.Settlement) engine.Settled {
	x := w.rows[t.ID]
	if x == nil || x.gone || x.Nonce == nil || *x.Nonce != t.Nonce || x.Queue != int64(t.Queue) {
		return engine.Settled{Err: lost(w.name(int64(t.Queue)), t.ID)}
	}
	v := rules.Settle(s, &x.Policy, x.Due, x.Attempt, w.now)
	if x.Kind == Dead && v.State.Live() && !w.revive(x) {
		return engine.Settled{Err: lost(w.queues[x.Queue].Name, t.ID)}
	}
	if x.Kind != Leased {
		x.Worker = x.lapsedFrom()
	}
	if v.State != engine.Leased && v.State != engine.Gone {
		x.Nonce, x.Policy.Priority = nil, v.Priority
	}
	switch v.State {
	case engine.Gone:
		w.leave(x, engine.Acked, w.ms)
		return engine.Settled{State: engine.Gone}
	case engine.Dead:
		w.die(x, v.Reason)
		return engine.Settled{State: engine.Dead}
	case engine.Leased:
		x.Kind, x.Ends = Leased, w.deadline(x, s.TTR)
	default:
		if s.Do == engine.Retry {
			x.fail(w.ms, v.Reason)
		}
		x.Attempt = v.Attempt
		x.wait(v.Due)
	}
	became := engine.Settled{State: x.state(w.ms), Until: rules.Instant(x.Ends)}
	w.advance(x)
	return became
}
