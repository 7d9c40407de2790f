package redisengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// Peek returns the message of each queue that is leased first, without a large content. Like
// Lease it goes by the shards that answer, as long as each queue has one.
func (e *Engine) Peek(ctx context.Context, queues []string) ([]engine.Info, error) {
	if err := e.calls.Enter(ctx, "peek"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	first := make([]engine.Info, len(queues))
	for shards, which := range e.inParts(queues) {
		if err := e.peek(ctx, queues, shards, which, first); err != nil {
			return nil, err
		}
	}
	return first, nil
}

// peek sets what is first in the queues, by index, of shards.
func (e *Engine) peek(ctx context.Context, queues []string, shards []*shard, which []int, first []engine.Info) error {
	answered, failed := make(map[int]bool), make(map[int]error)
	var up []*shard
	var of []int // index of the queue of each
	for i, s := range shards {
		if s.down.Load() {
			failed[which[i]] = errDown
			continue
		}
		up, of = append(up, s), append(of, which[i])
	}
	heads := make(map[int]head)
	err := e.eachAnswer(ctx, up, peekScript, nil, func(i int, a answer) error {
		n := of[i]
		switch {
		case a.err != nil:
			failed[n] = a.err
			return nil
		case len(a.values) == 1: // nothing is ready
			answered[n] = true
			return nil
		case len(a.values) != 7:
			return errAnswer
		}
		answered[n] = true
		h := readHeads(a.values[1:4])[0]
		if least, ok := heads[n]; !ok || h.compare(least) < 0 {
			first[n], heads[n] = peeked(queues[n], h, a), h
		}
		return nil
	})
	for n, cause := range failed {
		if !answered[n] {
			return fault("peek", queues[n], cause)
		}
	}
	return fault("peek", "", err)
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
