package redisengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// findIDs is the number of ids that one script looks for.
const findIDs = 200

// Find returns the queue of each id. An id names its shard but not its queue: the registered
// queues are asked, many in each round trip, until all ids are found.
func (e *Engine) Find(ctx context.Context, ids []engine.ID) ([]string, error) {
	if err := e.calls.Enter(ctx, "find"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	found := make([]string, len(ids))
	var which []int
	for n, id := range ids {
		if id >= idBase && shardOf(id) < e.shards {
			which = append(which, n)
		}
	}
	for part := range slices.Chunk(which, findIDs) {
		if err := e.find(ctx, ids, part, found); err != nil {
			return nil, fault("find", "", err)
		}
	}
	return found, nil
}

// find finds the ids at these indexes.
func (e *Engine) find(ctx context.Context, ids []engine.ID, which []int, found []string) error {
	groups, members := make([][]int, e.shards), make([][]string, e.shards)
	for _, n := range which {
		s := shardOf(ids[n])
		groups[s], members[s] = append(groups[s], n), append(members[s], member(ids[n]))
	}
	left := len(which)
	for after := ""; left > 0; {
		names, err := e.names(ctx, after, engine.MaxPage)
		if err != nil {
			return err
		}
		for shards := range e.inParts(names) {
			var qs []question
			for _, s := range shards {
				if len(members[s.n]) > 0 {
					qs = append(qs, question{script: findScript, shard: s, args: with(members[s.n]...)})
				}
			}
			for k, a := range e.ask(ctx, qs, e.patient()) {
				if a.err != nil {
					return a.err
				}
				s := qs[k].shard
				for i := range a.values {
					at, err := a.values[i].AsInt64()
					if err != nil || at < 1 || int(at) > len(groups[s.n]) {
						return errAnswer
					}
					found[groups[s.n][at-1]] = s.queue
					left--
				}
			}
			if left == 0 {
				return nil
			}
		}
		if len(names) < engine.MaxPage {
			return nil
		}
		after = names[len(names)-1]
	}
	return nil
}
