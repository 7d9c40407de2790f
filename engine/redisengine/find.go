package redisengine

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// findIDs is the number of ids that one script looks for.
const findIDs = 200

// Find returns the queue of each id. An id names its shard but not its queue: all queues are
// asked, many in each round trip, until all ids are found.
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

// find sets the queues of some ids, by index.
func (e *Engine) find(ctx context.Context, ids []engine.ID, which []int, found []string) error {
	groups, members := make([][]int, e.shards), make([][]string, e.shards) // by shard
	for _, n := range which {
		s := shardOf(ids[n])
		groups[s], members[s] = append(groups[s], n), append(members[s], member(ids[n]))
	}
	left := len(which)
	for after := ""; left > 0; {
		names, err := e.names(ctx, after, engine.MaxPage)
		if err != nil || len(names) == 0 {
			return err
		}
		after = names[len(names)-1]
		for shards := range e.inParts(names) {
			var reqs []request
			for _, s := range shards {
				if len(members[s.n]) > 0 {
					reqs = append(reqs, request{script: findScript, shard: s, args: with(members[s.n]...)})
				}
			}
			for i, a := range e.ask(ctx, reqs, e.patient()) {
				if a.err != nil {
					return a.err
				}
				s := reqs[i].shard
				if err := setFound(found, s.queue, groups[s.n], a.values); err != nil {
					return err
				}
				left -= len(a.values)
			}
			if left == 0 {
				break
			}
		}
	}
	return nil
}

// setFound sets the queue of the ids that a shard of it has found among some.
func setFound(found []string, queue string, some []int, values []rueidis.RedisMessage) error {
	for i := range values {
		at, err := values[i].AsInt64()
		if err != nil || at < 1 || int(at) > len(some) {
			return errAnswer
		}
		found[some[at-1]] = queue
	}
	return nil
}
