package timer

import (
	"math"
	"math/bits"
)

const (
	slotBits = 6
	slots    = 1 << slotBits
	slotMask = slots - 1
	topLevel = 10 // 11 levels of 6 bits hold 64

	headBit   = 1 << 31        // an index with it names the head of a slot's list
	freshHead = math.MaxUint32 // the head of the list of fresh entries
)

// limits are the numbers at which a Wheel changes how it keeps its entries. It
// works with any numbers. Tests use small ones, so that few entries show all
// that it does.
type limits struct {
	young int // fresh entries, at most
	// coarse is how many entries the first slot may hold unsorted: up to this
	// number looking at all of them costs less than a finer wheel.
	coarse int
	// burst is how many entries any slot takes before it gets a finer wheel.
	// It bounds the longest pause of any call. It is far above what a slot
	// holds in a well-spread load, so that few wheels serve many entries.
	burst uint16
	sweep int // how many wheels must be in use before empty ones are looked for
}

var usual = limits{young: 64, coarse: 16, burst: 4096, sweep: 256}

// node is one wheel: 64 slots, each a span of 64^level units. A slot holds a
// list of entries, or a finer wheel if the list grew long or came to the front.
//
// A bit in some says that a slot may hold something. It is cleared late, when
// something looks at the slot. A list's head is valid only while its bit is set.
// Each bit that is set in kids is set in some as well.
type node struct {
	some   uint64
	kids   uint64 // slots with a finer wheel; its number is heads[slot].next
	first  uint64 // the earliest due time of the span
	level  uint32
	number uint32
	heads  [slots]links
	count  [slots]uint16 // entries put into the list, cancelled ones too; levels above 0
}

func (n *node) shift() uint            { return uint(n.level) * slotBits }
func (n *node) slot(due uint64) uint32 { return uint32(due>>n.shift()) & slotMask }

// covers reports whether due is within the node's span.
func (n *node) covers(due uint64) bool {
	return (due^n.first)>>n.shift()>>slotBits == 0
}

// end is the latest due time of a slot.
func (n *node) end(slot uint32) uint64 {
	return n.first | uint64(slot)<<n.shift() | (1<<n.shift() - 1)
}

// head is the index of a slot's list head.
func (n *node) head(slot uint32) uint32 { return headBit | n.number<<slotBits | slot }

// nodes gives out nodes by number.
type nodes struct {
	all   []*node
	spare []uint32 // numbers of free nodes, at most maxSpare of them with memory
	gone  []uint32 // numbers without memory
}

const maxSpare = 16

func (a *nodes) take(level uint32, within uint64) *node {
	var n *node
	switch {
	case len(a.spare) > 0:
		n = a.all[a.spare[len(a.spare)-1]]
		a.spare = a.spare[:len(a.spare)-1]
	case len(a.gone) > 0:
		n = &node{number: a.gone[len(a.gone)-1]}
		a.gone = a.gone[:len(a.gone)-1]
		a.all[n.number] = n
	default:
		n = &node{number: uint32(len(a.all))}
		a.all = append(a.all, n)
	}
	n.some, n.kids, n.level = 0, 0, level
	n.first = within >> n.shift() >> slotBits << slotBits << n.shift()
	return n
}

func (a *nodes) drop(n *node) {
	if len(a.spare) < maxSpare {
		a.spare = append(a.spare, n.number)
		return
	}
	a.all[n.number] = nil
	a.gone = append(a.gone, n.number)
}

// live is how many nodes are in use.
func (a *nodes) live() int { return len(a.all) - len(a.spare) - len(a.gone) }

// levelOf is the level of the coarsest slot in which a and b differ.
func levelOf(a, b uint64) uint32 {
	return uint32(max(bits.Len64(a^b)-1, 0) / slotBits)
}
