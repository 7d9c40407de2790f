package memengine

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/timer"
)

// none is the instant, in Unix milliseconds, that never comes.
const none = math.MaxInt64

// message is a stored message, in its queue's slab and guarded by its queue's lock. Millions
// wait, so it is small: a pending message takes 120 bytes and its data. It refers to others
// by place, so the garbage collector follows only its data. To change its times, state or
// kind, first remove it from the queue's indexes (queue.take) and then add it again
// (queue.put).
type message struct {
	data string // key and body, in one piece
	kind *kind
	rare *rare // nil for most

	id           engine.ID
	due, created int64        // created of a finished message: when it finished
	end          int64        // when its state ends: due, the lease's deadline, or when it is forgotten; of a dead message: its death
	timer        timer.Handle // in queue.scheduled when scheduled, in queue.leases when leased

	// holder has the last lease. While it is set, that lease's token settles the message, even
	// after the deadline. nil: no token does.
	holder *holder

	place      uint32 // its own place
	prev, next uint32 // in the list of its minute
	nextID     uint32 // in the chains of queue.ids and queue.keys
	nextKey    uint32
	hash       uint32 // of the key

	attempt   uint32
	keyLen    uint32
	state     engine.State
	live      bool // counted in Engine.pending and, if it has a key, in queue.keys
	untold    bool // counted in queue.died
	inHistory bool // in the history
	ending    engine.Ending
}

// holder is the worker with a lease.
type holder struct {
	nonce   codec.Nonce
	worker  string
	started int64
}

// kind holds the fields that many messages share. It is shared and immutable.
type kind struct {
	engine.Policy
	contentType string
}

// rare holds fields that few messages need.
type rare struct {
	headers  []engine.Header
	failures []engine.Failure
	expires  int64        // none for never
	by       *holder      // of a message in the history: the lease that was acked, or the canceller
	timer    timer.Handle // in queue.expiring
}

// more returns the rare part, and creates it if there is none.
func (m *message) more() *rare {
	if m.rare == nil {
		m.rare = &rare{expires: none}
	}
	return m.rare
}

func (m *message) key() string  { return m.data[:m.keyLen] }
func (m *message) body() string { return m.data[m.keyLen:] }

// setContent stores a copy of a push's content.
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

// expires returns when the message expires; none: never.
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

// fail records that the message's lease failed at that instant.
func (m *message) fail(at int64, reason string) {
	r := m.more()
	f := engine.Failure{At: rules.Instant(at), Attempt: m.attempt, Worker: m.holder.worker, Reason: reason}
	r.failures = engine.AddFailure(r.failures, f)
}

// alone reports whether a ready message must be leased alone.
func (m *message) alone() bool { return m.holder != nil && m.kind.Alone(m.attempt) }

// byEnd is the order of lists, for messages of one state.
func byEnd(a, b *message) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.id, b.id))
}

// copied is slices.Clone, but returns nil for an empty slice.
func copied[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}
