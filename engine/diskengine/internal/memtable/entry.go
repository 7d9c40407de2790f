package memtable

import (
	"hash/maphash"
	"unsafe"
)

// Area is a part of a queue with an order of its own, and with sstables of its own. A key
// should have at most one live entry and one remembered one.
type Area uint8

// The areas, and the time by which each is ordered:
const (
	Live     Area = iota // live messages, leased ones too, by due time
	Dead                 // dead messages, by when they died
	Finished             // remembered keys, by when they are forgotten
	Listed               // finished messages that are listed, by when they ended
	Areas                // how many areas there are
)

// AreaOf is the area of dead messages, or of live ones.
func AreaOf(dead bool) Area {
	if dead {
		return Dead
	}
	return Live
}

// IsMessage reports whether the entries of the area are messages, live or dead.
func (a Area) IsMessage() bool { return a <= Dead }

// Shares reports whether several entries of the area may have one key.
func (a Area) Shares() bool { return a == Dead || a == Listed }

// listedBit is set in the ids of entries that are Listed: the key of the same message may be
// remembered.
const listedBit = 1 << 63

// IDOf returns the id of the entry that a message has in an area.
func (a Area) IDOf(message uint64) uint64 {
	if a == Listed {
		message |= listedBit
	}
	return message
}

// MessageOf returns the id of the message of an entry.
func MessageOf(id uint64) uint64 { return id &^ listedBit }

// Entry is a message, a remembered key or a finished message that is listed.
type Entry struct {
	ID    uint64 // neither 0 nor the greatest uint64; see Area.IDOf
	Queue uint32 // at most MaxQueue
	Area  Area
	At    int64  // the time by which it is ordered
	Key   []byte // at most 65,535 bytes; empty: none
	Value []byte // the caller's; with Tail at most 4 GiB - 64 KiB
	Tail  []byte // the rest of the value, for Add and Put; else nil
	Ahead *Ahead // where Tail was copied before; nil: nowhere

	// Sealed says of an entry that was found that it is in a sealed memtable: only a Put
	// moves it, and its record in the log must carry its content.
	Sealed bool
}

// Position is the place of the entry in its area of the queue.
func (e *Entry) Position() Position { return Position{At: e.At, ID: e.ID} }

// Position is a place in an area of a queue.
type Position struct {
	At int64
	ID uint64
}

// Before reports whether p comes before o.
func (p Position) Before(o Position) bool { return p.At < o.At || p.At == o.At && p.ID < o.ID }

// Next is the position right after p.
func (p Position) Next() Position { return Position{At: p.At, ID: p.ID + 1} }

// header comes before the key and the value of an entry.
type header struct {
	id      uint64
	at      int64
	place   place
	value   uint32 // bytes
	key     uint16 // bytes
	class   uint8
	older   bool   // another entry of the area has the key, and is later
	hash    uint32 // of the key
	ordinal uint32 // in the sstable, once it was passed (Sealed.Pass)
	large   uint32 // one more than the index in arena.large; 0: key and value follow the header
}

const headerSize = int(unsafe.Sizeof(header{}))

// place is an area of a queue. Places are ordered by area, then by queue.
type place uint32

const areaShift = 30

// Masks of a place:
const (
	allOf  = ^place(0)
	areaOf = allOf &^ MaxQueue
)

// MaxQueue is the greatest number that a queue may have.
const MaxQueue = 1<<areaShift - 1

func placeOf(queue uint32, a Area) place { return place(a)<<areaShift | place(queue) }

func (p place) queue() uint32 { return uint32(p & MaxQueue) }
func (p place) area() Area    { return Area(p >> areaShift) }

// hashKey is the hash of a key in an area.
func hashKey(seed maphash.Seed, queue uint32, a Area, key []byte) uint32 {
	h := maphash.Bytes(seed, key) + uint64(placeOf(queue, a))*0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return uint32(h >> 32)
}

// hashID spreads ids. They are the store's own, so it need not resist attacks.
func hashID(id uint64) uint32 { return uint32(id * 0x9e3779b97f4a7c15 >> 32) }
