package redisengine

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
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

// ids allocates ids, each once: the numbers of a block, and then those of the next.
type ids struct {
	turn  chan struct{} // holds a token while nobody uses the fields below
	block uint64
	used  uint64 // numbers used
	at    int    // the key that answered last
}

func newIDs() ids {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	return ids{turn: turn, used: blockSize}
}

// id returns a new id for a message of a shard. All waiting, for others that reserve a block
// as for the block, is within the bound: servers that hang must not be waited for by one call
// after another.
func (e *Engine) id(ctx context.Context, shard int, until calls.Bound) (engine.ID, error) {
	x := &e.ids
	select {
	case <-x.turn:
	default:
		select {
		case <-x.turn:
		case <-time.After(time.Until(until.Answer)):
			return 0, errNotAsked
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	defer func() { x.turn <- struct{}{} }()
	if x.used == blockSize {
		block, err := e.newBlock(ctx, until)
		if err != nil {
			return 0, err
		}
		x.block, x.used = block, 0
	}
	x.used++
	return newID(x.block, x.used-1, shard), nil
}

// drop abandons the block of an id that was already in use.
func (e *Engine) drop(id engine.ID) {
	<-e.ids.turn
	defer func() { e.ids.turn <- struct{}{} }()
	if e.ids.block == blockOf(id) {
		e.ids.used = blockSize
	}
}

// newBlock reserves a block. In a cluster it asks the key that answered last, then the
// others. Called by whoever has the turn.
func (e *Engine) newBlock(ctx context.Context, until calls.Bound) (block uint64, err error) {
	if !e.cluster() {
		return e.reserve(ctx, 0, until)
	}
	ctx, cancel := context.WithDeadline(ctx, until.Answer)
	defer cancel()
	for pause := pauses(); ; {
		for range idKeys {
			if block, err = e.reserve(ctx, e.ids.at, calls.Once(downTimeout+e.slack)); err == nil || fateOf(err) == calls.Answered {
				return block, err
			}
			e.ids.at = (e.ids.at + 1) % len(idKeys)
		}
		if until.Over() || !pause.Wait(ctx) {
			return 0, err
		}
	}
}

// reserve reserves a block by one of the keys.
func (e *Engine) reserve(ctx context.Context, k int, until calls.Bound) (uint64, error) {
	a := e.eval1(ctx, until, idsScript, []string{e.prefix + idKeys[k]}, strconv.Itoa(len(idKeys)), strconv.Itoa(k))
	if a.err != nil {
		return 0, a.err
	}
	if len(a.values) != 1 {
		return 0, errAnswer
	}
	block, err := a.values[0].AsInt64()
	if err != nil {
		return 0, errAnswer
	}
	return uint64(block), nil
}
