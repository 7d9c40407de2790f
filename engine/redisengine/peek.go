package redisengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// Peek returns the message of each queue that is leased first, without a large content.
func (e *Engine) Peek(ctx context.Context, queues []string) ([]engine.Info, error) {
	if err := e.calls.Enter(ctx, "peek"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	first, heads := make([]engine.Info, len(queues)), make([]head, len(queues))
	for shards, which := range e.inParts(queues) {
		err := e.eachShard(ctx, shards, peekScript, nil, func(i int, a answer) error {
			if len(a.values) == 1 {
				return nil // nothing is ready
			}
			if len(a.values) != 7 {
				return errAnswer
			}
			n, h := which[i], readHeads(a.values[1:4])[0]
			if first[n].ID != 0 && h.compare(heads[n]) > 0 {
				return nil
			}
			first[n], heads[n] = peeked(queues[n], h, a), h
			return nil
		})
		if err != nil {
			return nil, fault("peek", "", err)
		}
	}
	return first, nil
}

// peeked returns the message of an answer. A damaged one is first, too, until a lease takes it
// away.
func peeked(queue string, h head, a answer) engine.Info {
	if i, _, err := readMessage(queue, a.values[3:], a.now); err == nil {
		return i
	}
	i := engine.Info{ID: idOf(h.id), Queue: queue, State: engine.Ready, Due: instant(float64(h.due))}
	i.Priority = uint32(h.priority)
	return i
}
