package redisengine

import (
	"context"
	"strconv"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// An id is, from the top: one bit that gives every id 19 digits, a block of 41 bits,
// a number of 14 bits within the block, and 8 bits for the shard. Blocks are numbered
// by time, one a millisecond at most, and reserved in Redis: see lua/ids.lua. They
// last until the year 2092.
const (
	shardBits  = 8
	numberBits = 14
	idBase     = 1 << 60

	// MaxShards is how many shards a queue can have.
	MaxShards = 1 << shardBits
)

func newID(block, number uint64, shard int) engine.ID {
	return engine.ID(idBase + block<<(numberBits+shardBits) | number<<shardBits | uint64(shard))
}

// shardOf returns the shard that an id names.
func shardOf(id engine.ID) int { return int(id & (MaxShards - 1)) }

// member is an id as Redis has it.
func member(id engine.ID) string {
	s := strconv.FormatUint(uint64(id), 10)
	for len(s) < 19 {
		s = "0" + s
	}
	return s
}

// ids hands out ids, each once.
type ids struct {
	mu    sync.Mutex
	block uint64
	used  uint64 // numbers of the block; all at first
}

// id returns a new id for a message of a shard.
func (e *Engine) id(ctx context.Context, shard int) (engine.ID, error) {
	x := &e.ids
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.used == 1<<numberBits {
		values, err := e.eval1(ctx, request{script: idsScript, keys: []string{e.prefix + ":ids"}})
		if err != nil {
			return 0, err
		}
		block, err := values[0].AsInt64()
		if err != nil {
			return 0, err
		}
		x.block, x.used = uint64(block), 0
	}
	x.used++
	return newID(x.block, x.used-1, shard), nil
}
