package memengine

import (
	"hash/maphash"
	"math/bits"

	"github.com/tarryhq/tarry/engine"
)

// index finds messages by a hash. It is a table by linear hashing: each message
// more makes one chain more, by splitting one that there is, so that no call has
// to rebuild the table. The chains run through the messages, and the table has
// four bytes for each.
type index struct {
	msgs  *slab[message]
	heads []uint32 // of the chains
	n     int
	keyed bool // by key, else by id
}

func (x *index) hash(m *message) uint32 {
	if x.keyed {
		return m.hash
	}
	return hashID(m.id)
}

// next is the place of the next in the chain.
func (x *index) next(m *message) *uint32 {
	if x.keyed {
		return &m.nextKey
	}
	return &m.nextID
}

// chain numbers the chain of a hash: as many of its low bits as there are chains
// for, so that the last chains, which are split already, take one bit more.
func (x *index) chain(hash uint32) uint32 {
	mask := uint32(1)<<bits.Len(uint(len(x.heads))) - 1
	n := hash & mask
	if n >= uint32(len(x.heads)) {
		n &= mask >> 1
	}
	return n
}

func (x *index) add(m *message) {
	if x.n >= len(x.heads) {
		x.split()
	}
	x.link(m)
	x.n++
}

func (x *index) link(m *message) {
	head := &x.heads[x.chain(x.hash(m))]
	*x.next(m), *head = *head, m.place
}

// split makes one chain more, of some of that which had the same low bits.
func (x *index) split() {
	n := uint32(len(x.heads))
	x.heads = append(x.heads, 0)
	if n == 0 {
		return
	}
	old := n &^ (1 << (bits.Len32(n) - 1))
	place := x.heads[old]
	x.heads[old] = 0
	for place != 0 {
		m := x.msgs.at(place)
		place = *x.next(m)
		x.link(m)
	}
}

// remove takes out a message that is there.
func (x *index) remove(m *message) {
	at := &x.heads[x.chain(x.hash(m))]
	for *at != m.place {
		at = x.next(x.msgs.at(*at))
	}
	*at = *x.next(m)
	if x.n--; x.n == 0 && len(x.heads) > 1024 {
		x.heads = nil
	}
}

// find returns the message of this hash that is the one meant; nil: none is.
func (x *index) find(hash uint32, meant func(*message) bool) *message {
	if x.n == 0 {
		return nil
	}
	for place := x.heads[x.chain(hash)]; place != 0; {
		m := x.msgs.at(place)
		if meant(m) {
			return m
		}
		place = *x.next(m)
	}
	return nil
}

// hashID keeps ids that follow each other together, for messages pushed together
// are often leased and settled together and their chains are then in the cache. It
// spreads them by the 128, for a queue may hold every 64th id alone.
func hashID(id engine.ID) uint32 {
	x := uint64(id>>7) * 0x9E37_79B9_7F4A_7C15
	return uint32(id) + uint32(x^x>>32)
}

// byID returns the message of an id, live or dead; nil: there is none.
func (q *queue) byID(id engine.ID) *message {
	m := q.ids.find(hashID(id), func(m *message) bool { return m.id == id })
	if m != nil && m.state == engine.Dead && !q.stays(m) {
		return nil
	}
	return m
}

// byKey returns the live message of a key; nil: there is none.
func (q *queue) byKey(key string) *message {
	if m := q.keyed(key); m != nil && m.live {
		return m
	}
	return nil
}

// keyed returns the live message of a key, or the finished one, whose time may be over;
// nil: there is neither.
func (q *queue) keyed(key string) *message {
	if key == "" {
		return nil
	}
	hash := q.hashKey(key)
	return q.keys.find(hash, func(m *message) bool { return m.hash == hash && m.key() == key })
}

func (q *queue) hashKey(key string) uint32 { return uint32(maphash.String(q.engine.seed, key)) }
