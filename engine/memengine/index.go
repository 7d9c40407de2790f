package memengine

import (
	"hash/maphash"
	"math/bits"

	"github.com/tarryhq/tarry/engine"
)

// index finds messages by a hash. It uses linear hashing: each added message splits one
// chain into two, so no call has to rebuild the table. The chains run through the messages,
// and the table takes four bytes for each.
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

// next returns the place of the next message in the chain.
func (x *index) next(m *message) *uint32 {
	if x.keyed {
		return &m.nextKey
	}
	return &m.nextID
}

// chain returns the chain of a hash by its low bits. Chains that are split already use one
// bit more.
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

// split adds a chain, and moves to it some messages of the chain with the same low bits.
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

// remove removes a message that is in the index.
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

// find returns the message with this hash that matches; nil: none.
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

// hashID keeps runs of 128 ids together: messages pushed together are often leased and
// settled together, and their chains are then in the cache. It spreads the runs, because a
// queue may hold only every 64th id.
func hashID(id engine.ID) uint32 {
	x := uint64(id>>7) * 0x9E37_79B9_7F4A_7C15
	return uint32(id) + uint32(x^x>>32)
}

// byID returns the message with an id, live, dead or in the history; nil: none.
func (q *queue) byID(id engine.ID) *message {
	m := q.ids.find(hashID(id), func(m *message) bool { return m.id == id })
	if m != nil && (m.state == engine.Dead && !q.stays(m) || m.inHistory && !q.lists(m)) {
		return nil
	}
	return m
}

// byKey returns the live message with a key; nil: none.
func (q *queue) byKey(key string) *message {
	if m := q.keyed(key); m != nil && m.live {
		return m
	}
	return nil
}

// keyed returns the live message with a key, or else the finished one, which may be past its
// time; nil: neither exists.
func (q *queue) keyed(key string) *message {
	if key == "" {
		return nil
	}
	hash := q.hashKey(key)
	return q.keys.find(hash, func(m *message) bool { return m.hash == hash && m.key() == key })
}

func (q *queue) hashKey(key string) uint32 { return uint32(maphash.String(q.engine.seed, key)) }
