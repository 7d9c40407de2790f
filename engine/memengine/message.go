package memengine

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
	"github.com/tarryhq/tarry/timer"
)

// none is the instant that never comes, where others are Unix milliseconds.
const none = math.MaxInt64

// message is a message as kept, in its queue's slab and under its queue's lock.
// Millions wait, so it is small and names others by their places: the collector
// follows it to its data and no further, and a pending one takes 120 bytes and
// what its data takes. Whoever changes an instant, the state or the kind first
// takes it out of the queue's orders (queue.take) and then puts it back
// (queue.put).
type message struct {
	data string // key and body, in one piece
	kind *kind
	rare *rare // nil for most

	id           engine.ID
	due, created int64        // created: when finished, since when
	end          int64        // when its state ends: due, the lease's deadline, or when it is forgotten; when dead: since when
	timer        timer.Handle // in queue.scheduled when scheduled, in queue.leases when leased

	// nonce is that of the last lease, whose token settles as long as it is there: beyond
	// the deadline too, until something else has been decided; nil: none does.
	nonce *token.Nonce

	place      uint32 // its own
	prev, next uint32 // in its minute
	nextID     uint32 // in the chains of queue.ids and queue.keys
	nextKey    uint32
	hash       uint32 // of the key

	attempt uint32
	keyLen  uint32
	state   engine.State
	live    bool // counted in Engine.pending and, if it has a key, in queue.keys
	untold  bool // counted in queue.died
	ending  engine.Ending
}

// kind is what many messages have in common. It is shared and never changed.
type kind struct {
	engine.Policy
	contentType string
}

// rare is what few messages have.
type rare struct {
	headers   []engine.Header
	lastError string
	expires   int64        // none for never
	timer     timer.Handle // in queue.expiring
}

// more returns the rare part, which it makes if there is none.
func (m *message) more() *rare {
	if m.rare == nil {
		m.rare = &rare{expires: none}
	}
	return m.rare
}

func (m *message) key() string  { return m.data[:m.keyLen] }
func (m *message) body() string { return m.data[m.keyLen:] }

// setContent keeps a copy of what a push brings.
func (m *message) setContent(in *engine.Message, k *kind) {
	var b strings.Builder
	b.Grow(len(in.Key) + len(in.Body))
	b.WriteString(in.Key)
	b.Write(in.Body)
	m.data, m.keyLen, m.kind = b.String(), uint32(len(in.Key)), k
	if len(in.Headers) > 0 || m.rare != nil {
		m.more().headers = copied(in.Headers)
	}
}

// expires returns the instant after which it is not worth handling.
func (m *message) expires() int64 {
	if m.rare == nil {
		return none
	}
	return m.rare.expires
}

func (m *message) setExpires(at int64) {
	if at != m.expires() {
		m.more().expires = at
	}
}

func (m *message) setError(reason string) {
	if reason != "" || m.rare != nil {
		m.more().lastError = reason
	}
}

// alone reports whether a ready message is to be leased by itself.
func (m *message) alone() bool { return m.nonce != nil && m.kind.Alone(m.attempt) }

// giveBack undoes the attempt that the last lease counted.
func (m *message) giveBack() {
	if m.attempt > 0 {
		m.attempt--
	}
}

// byEnd orders messages of one state as lists show them.
func byEnd(a, b *message) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.id, b.id))
}

// expiry returns when a message due then expires under policy p.
func expiry(due int64, p *engine.Policy) int64 {
	if p.ExpireAfter <= 0 {
		return none
	}
	return due + millis(p.ExpireAfter)
}

// millis is d in milliseconds, rounded up.
func millis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// copied is slices.Clone that makes nil of the empty slice.
func copied[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}

// instant is ms as the contract has it: UTC, zero for none.
func instant(ms int64) time.Time {
	if ms == none {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
