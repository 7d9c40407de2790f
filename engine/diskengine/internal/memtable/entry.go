package memtable

import (
	"hash/maphash"
	"unsafe"
)

// Area is a part of a queue with an order of its own, and an sstable of its own. Of live entries, and
// of finished ones, a key should have one at most.
type Area uint8

// The areas, and the time by which each is ordered.
const (
	Live     Area = iota // due; what is leased stays where it is
	Dead                 // died
	Finished             // forgotten: keys that are remembered
	areas
)

// Entry is a message, or a key that is remembered.
type Entry struct {
	ID    uint64 // neither 0 nor the greatest number
	Queue uint32 // at most MaxQueue
	Area  Area
	At    int64  // the time by which it is ordered
	Key   []byte // at most 65,535; empty: none
	Value []byte // of the caller's; at most 4 GiB - 64 KiB
	Tail  []byte // what follows it, of one that is added or put; else nil
	Ahead *Ahead // to which that was copied; nil: nowhere

	// Sealed, of an entry that is found, says that it is in a sealed memtable: it is
	// moved by a Put only, and what is said of it in the log must carry its content. Passed
	// says that it was passed to the sstable of its area, there with the number Ordinal.
	Sealed  bool
	Passed  bool
	Ordinal uint32
}

// Position is a place in an area of a queue.
type Position struct {
	At int64
	ID uint64
}

// header is what is before the key and the value of an entry.
type header struct {
	id      uint64
	at      int64
	place   place
	value   uint32 // bytes
	key     uint16 // bytes
	class   uint8
	_       uint8
	hash    uint32 // of the key
	ordinal uint32 // one more than that in the sstable; 0: not passed
	large   uint32 // one more than where the key and value are in arena.large; 0: after the header
}

const headerSize = int(unsafe.Sizeof(header{}))

// place is an area of a queue: that of the first queue comes first, then those of the others,
// then the next area.
type place uint32

const areaShift = 30

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

// hashID spreads ids, which are ours and not hostile.
func hashID(id uint64) uint32 { return uint32(id * 0x9e3779b97f4a7c15 >> 32) }
