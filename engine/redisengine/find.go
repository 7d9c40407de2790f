package redisengine

import (
	"context"
	"maps"
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

// find sets the queues of some ids, by index. It asks first the queues that this process has used:
// they may not be registered.
func (e *Engine) find(ctx context.Context, ids []engine.ID, which []int, found []string) error {
	groups, members := make([][]int, e.shards), make([][]string, e.shards) // by shard
	for _, n := range which {
		s := shardOf(ids[n])
		groups[s], members[s] = append(groups[s], n), append(members[s], member(ids[n]))
	}
	used := e.usedQueues()
	names, after, left := slices.Collect(maps.Keys(used)), "", len(which)
	for {
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
				if err := setFound(found, reqs[i].shard.queue, groups[reqs[i].shard.n], a.values); err != nil {
					return err
				}
				left -= len(a.values)
			}
			if left == 0 {
				return nil
			}
		}
		var err error
		if names, err = e.names(ctx, after, engine.MaxPage); err != nil || len(names) == 0 {
			return err
		}
		after = names[len(names)-1]
		names = slices.DeleteFunc(names, func(name string) bool { return used[name] })
	}
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

// usedQueues returns the names of the queues that this process has used.
func (e *Engine) usedQueues() map[string]bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	names := make(map[string]bool, len(e.queues))
	for name := range e.queues {
		names[name] = true
	}
	return names
}
