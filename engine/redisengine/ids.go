package redisengine

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// An id has four parts. From the top they are one bit that gives every id 19 digits, a block
// of 41 bits, a number of 14 bits within the block, and 8 bits for the shard. Blocks are
// numbered by time. Redis reserves each block for one engine: see lua/ids.lua. They last
// until the year 2092.
const (
	shardBits  = 8
	numberBits = 14
	idBase     = 1 << 60
	blockSize  = 1 << numberBits

	// MaxShards is the largest number of shards of a queue.
	MaxShards = 1 << shardBits
)

func newID(block, number uint64, shard int) engine.ID {
	return engine.ID(idBase + block<<(numberBits+shardBits) | number<<shardBits | uint64(shard))
}

// shardOf returns the shard in an id.
func shardOf(id engine.ID) int { return int(id & (MaxShards - 1)) }

// blockOf returns the block of an id.
func blockOf(id engine.ID) uint64 { return uint64(id-idBase) >> (numberBits + shardBits) }

// blocks describes the blocks of a call's ids, as lua/push.lua reads it.
func (e *Engine) blocks(least, most uint64) string {
	text := fmt.Sprintf("%013d", most) + e.origin
	if least != most {
		return "+" + text
	}
	return text
}

// readID reads an id from an answer.
func readID(v *rueidis.RedisMessage) (engine.ID, error) {
	text, err := v.ToString()
	if err != nil || len(text) != memberBytes {
		return 0, errAnswer
	}
	return idOf(text), nil
}

// member is an id as stored in Redis: 8 bytes, big-endian.
func member(id engine.ID) string {
	var b [memberBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return string(b[:])
}

// idOf parses a member; 0 if it is not an id.
func idOf(member string) engine.ID {
	if len(member) != memberBytes {
		return 0
	}
	return engine.ID(binary.BigEndian.Uint64([]byte(member)))
}

const memberBytes = 8

// idKeys are the suffixes of the keys that reserve blocks. The braces put them into the
// middle of each quarter of a cluster's slots, so that no master holds them all. A single
// server needs only the first.
var idKeys = [...]string{":{ids-ibg}", ":{ids-ise}", ":{ids-bly}", ":{ids-jtc}"}

// ids allocates ids, each once. The next block is reserved in the background while the
// current one still has many ids.
type ids struct {
	mu     sync.Mutex
	block  uint64
	used   uint64 // numbers used; at first all
	spare  uint64 // the next block; 0: not reserved yet
	flight *reservation
	at     int // the key that answered last
}

// reservation is a reservation in progress, shared by all its waiters.
type reservation struct {
	done chan struct{}
	err  error
}

// drop abandons the block of an id that was already in use.
func (x *ids) drop(id engine.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.block == blockOf(id) {
		x.used = 1 << numberBits
	}
}

// id returns a new id for a message of a shard.
func (e *Engine) id(ctx context.Context, shard int) (engine.ID, error) {
	for {
		id, flight := e.ids.next(shard, e.reserve)
		if flight == nil {
			return id, nil
		}
		select {
		case <-flight.done:
			if flight.err != nil {
				return 0, flight.err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// next returns an id, or the reservation to wait for.
func (x *ids) next(shard int, reserve func(*reservation)) (engine.ID, *reservation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.used == blockSize && x.spare != 0 {
		x.block, x.used, x.spare = x.spare, 0, 0
	}
	if x.used >= blockSize/2 && x.spare == 0 && x.flight == nil {
		x.flight = &reservation{done: make(chan struct{})}
		reserve(x.flight)
	}
	if x.used == blockSize {
		return 0, x.flight
	}
	x.used++
	return newID(x.block, x.used-1, shard), nil
}

// reserve reserves a block in the background.
func (e *Engine) reserve(flight *reservation) {
	e.tasks.Go(func() {
		block, err := e.newBlock()
		x := &e.ids
		x.mu.Lock()
		defer x.mu.Unlock()
		x.spare, x.flight = block, nil
		flight.err = err
		close(flight.done)
	})
}

// newBlock reserves a block. In a cluster it asks the key that answered last, and after a
// failure all keys.
func (e *Engine) newBlock() (uint64, error) {
	if !e.cluster() {
		values, err := e.eval1(e.ctx, e.blockRequest(0))
		return readBlock(values, err)
	}
	e.ids.mu.Lock()
	at := e.ids.at
	e.ids.mu.Unlock()
	which := []int{at}
	until := e.patient()
	pause := pauses()
	for {
		reqs := make([]request, len(which))
		for i, k := range which {
			reqs[i] = e.blockRequest(k)
		}
		var err error
		for i, r := range e.eval(e.ctx, reqs, attempt.Once(downTimeout+e.slack)) {
			var block uint64
			if block, err = readBlock(r.values, r.err); err == nil {
				e.ids.mu.Lock()
				e.ids.at = which[i]
				e.ids.mu.Unlock()
				return block, nil
			}
		}
		if fateOf(err) == attempt.Answered || until.Over() || e.ctx.Err() != nil {
			return 0, err
		}
		if len(which) > 1 {
			pause.Wait(e.ctx)
		}
		which = which[:0]
		for k := range idKeys {
			which = append(which, k)
		}
	}
}

func (e *Engine) blockRequest(k int) request {
	return request{script: idsScript, keys: []string{e.prefix + idKeys[k]}, args: []string{"", strconv.Itoa(len(idKeys)), strconv.Itoa(k)}}
}

func readBlock(values []rueidis.RedisMessage, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	if len(values) != 1 {
		return 0, errAnswer
	}
	block, err := values[0].AsInt64()
	if err != nil {
		return 0, errAnswer
	}
	return uint64(block), nil
}
