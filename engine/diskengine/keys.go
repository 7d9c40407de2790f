package diskengine

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tarryhq/tarry/engine"
)

// The kinds of entries: the first byte of every key. All but the two of the
// engine as a whole are followed by the queue's number in four bytes.
const (
	kindBody     byte = 'b' // queue, id                  → a large body
	kindCounts   byte = 'c' // queue                      → waiting, leased, dead
	kindDue      byte = 'd' // queue, due, id             → priority
	kindMinute   byte = 'f' // queue, minute              → how many wait (merged)
	kindKey      byte = 'k' // queue, key                 → id, due, flags, and of a memory how it ended
	kindLease    byte = 'l' // queue, id                  → deadline, nonce, attempt, flags
	kindMessage  byte = 'm' // queue, id                  → record
	kindFinished byte = 'n' // queue                      → memories, and when the first of them may be forgotten
	kindSettings byte = 'o' // queue                      → settings
	kindPause    byte = 'p' // queue                      → until
	kindQueue    byte = 'q' // name                       → queue number
	kindIDs      byte = 's' //                            → the first id never reserved
	kindMark     byte = 'w' // queue                      → due, id: at or below every due entry
	kindDead     byte = 'x' // queue, died, id            → nothing
	kindDeadName byte = 'y' // queue, len, key, died, id  → nothing
	kindForget   byte = 'z' // queue, forgotten, id       → the key of a memory
)

// never is the instant that is none.
const never = math.MinInt64

var errKey = errors.New("corrupt entry: malformed key")

// position is a place in an order of time: of due, deadline, death or forgetting.
type position struct {
	at int64
	id engine.ID
}

func (p position) less(o position) bool {
	return p.at < o.at || p.at == o.at && p.id < o.id
}

func (p position) compare(o position) int {
	switch {
	case p.less(o):
		return -1
	case o.less(p):
		return 1
	}
	return 0
}

// after is the least position behind p.
func (p position) after() position {
	if p.id == math.MaxUint64 {
		return position{p.at + 1, 0}
	}
	return position{p.at, p.id + 1}
}

func (p position) append(b []byte) []byte { return appendID(appendTime(b, p.at), p.id) }

// lastPosition is behind everything: loaded up to it means loaded whole.
var lastPosition = position{math.MaxInt64, math.MaxUint64}

func appendHead(b []byte, kind byte, queue uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, kind), queue)
}

// appendTime writes an instant or minute such that bytes sort as numbers do.
func appendTime(b []byte, t int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t)^1<<63)
}

func appendID(b []byte, id engine.ID) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(id))
}

// idKey is the key of a message, a body or a lease.
func idKey(b []byte, kind byte, queue uint32, id engine.ID) []byte {
	return appendID(appendHead(b, kind, queue), id)
}

// timeKey is the key of an entry of due times, deaths or memories.
func timeKey(b []byte, kind byte, queue uint32, p position) []byte {
	return appendID(appendTime(appendHead(b, kind, queue), p.at), p.id)
}

func minuteKey(b []byte, queue uint32, minute int64) []byte {
	return appendTime(appendHead(b, kindMinute, queue), minute)
}

func nameKey(b []byte, queue uint32, key string) []byte {
	return append(appendHead(b, kindKey, queue), key...)
}

// deadNamePrefix begins all entries of dead messages that had this key.
func deadNamePrefix(b []byte, queue uint32, key string) []byte {
	b = appendHead(b, kindDeadName, queue)
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	return append(b, key...)
}

func deadNameKey(b []byte, queue uint32, key string, p position) []byte {
	return appendID(appendTime(deadNamePrefix(b, queue, key), p.at), p.id)
}

const headLen = 1 + 4

func parseHead(k []byte, kind byte) (queue uint32, rest []byte, err error) {
	if len(k) < headLen || k[0] != kind {
		return 0, nil, errKey
	}
	return binary.BigEndian.Uint32(k[1:]), k[headLen:], nil
}

func parseTime(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// parseIDKey reads the key of a message, a body or a lease.
func parseIDKey(k []byte, kind byte) (queue uint32, id engine.ID, err error) {
	queue, rest, err := parseHead(k, kind)
	if err != nil || len(rest) != 8 {
		return 0, 0, errKey
	}
	return queue, engine.ID(binary.BigEndian.Uint64(rest)), nil
}

// parseTimeKey reads what timeKey writes.
func parseTimeKey(k []byte, kind byte) (queue uint32, p position, err error) {
	queue, rest, err := parseHead(k, kind)
	if err != nil || len(rest) != 16 {
		return 0, position{}, errKey
	}
	return queue, position{parseTime(rest), engine.ID(binary.BigEndian.Uint64(rest[8:]))}, nil
}

func parseMinuteKey(k []byte) (queue uint32, minute int64, err error) {
	queue, rest, err := parseHead(k, kindMinute)
	if err != nil || len(rest) != 8 {
		return 0, 0, errKey
	}
	return queue, parseTime(rest), nil
}

// parseDeadNameKey reads the position at the end of a dead-by-key entry.
func parseDeadNameKey(k []byte) (position, error) {
	_, rest, err := parseHead(k, kindDeadName)
	if err != nil || len(rest) < 2 {
		return position{}, errKey
	}
	n := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) != n+16 {
		return position{}, errKey
	}
	rest = rest[n:]
	return position{parseTime(rest), engine.ID(binary.BigEndian.Uint64(rest[8:]))}, nil
}

// upperBound is the least key behind all keys that begin with prefix.
func upperBound(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// minuteOf is the minute in which an instant lies.
func minuteOf(ms int64) int64 {
	m := ms / 60_000
	if ms%60_000 < 0 {
		m--
	}
	return m
}
