package redisengine

import (
	"context"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// findIDs is the number of ids that one script looks for.
const findIDs = 200

// Find returns the queue of each id. An id names its shard but not its queue: the queues are
// asked, many in each round trip, until all ids are found. First come those that this process
// has used: they may not be registered yet.
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
		if err := e.newSearch(ids, part, found).everywhere(ctx); err != nil {
			return nil, fault("find", "", err)
		}
	}
	return found, nil
}

// search is for some ids.
type search struct {
	e       *Engine
	found   []string   // the queue of each id
	groups  [][]int    // by shard, the indexes of its ids
	members [][]string // and these ids as in Redis
	left    int        // how many are not found
}

func (e *Engine) newSearch(ids []engine.ID, which []int, found []string) *search {
	s := &search{e: e, found: found, groups: make([][]int, e.shards), members: make([][]string, e.shards), left: len(which)}
	for _, n := range which {
		shard := shardOf(ids[n])
		s.groups[shard], s.members[shard] = append(s.groups[shard], n), append(s.members[shard], member(ids[n]))
	}
	return s
}

// everywhere searches all queues.
func (s *search) everywhere(ctx context.Context) error {
	used := s.e.usedQueues()
	if err := s.in(ctx, slices.Collect(maps.Keys(used))); err != nil {
		return err
	}
	for after := ""; s.left > 0; {
		names, err := s.e.names(ctx, after, engine.MaxPage)
		if err != nil || len(names) == 0 {
			return err
		}
		after = names[len(names)-1]
		if err := s.in(ctx, slices.DeleteFunc(names, func(name string) bool { return used[name] })); err != nil {
			return err
		}
	}
	return nil
}

// in searches these queues.
func (s *search) in(ctx context.Context, names []string) error {
	for shards := range s.e.inParts(names) {
		if s.left == 0 {
			return nil
		}
		var reqs []request
		for _, sh := range shards {
			if len(s.members[sh.n]) > 0 {
				reqs = append(reqs, request{script: findScript, shard: sh, args: with(s.members[sh.n]...)})
			}
		}
		for i, a := range s.e.ask(ctx, reqs, s.e.patient()) {
			if a.err != nil {
				return a.err
			}
			if err := s.take(reqs[i].shard, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes what a shard has found.
func (s *search) take(sh *shard, a answer) error {
	group := s.groups[sh.n]
	for i := range a.values {
		at, err := a.values[i].AsInt64()
		if err != nil || at < 1 || int(at) > len(group) {
			return errAnswer
		}
		s.found[group[at-1]] = sh.queue
		s.left--
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
