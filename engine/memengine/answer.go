package memengine

import (
	"crypto/rand"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// answer makes the copies of messages that leave the engine. Small pieces of one answer
// share memory, a few kilobytes at a time: that saves allocations, and a caller that
// retains one body does not retain all. How much is shared depends on the number of
// messages expected or seen.
type answer struct {
	queue string
	left  int // most messages of the queue still to come
	gone  int // messages copied so far

	bytes []byte          // bodies
	text  strings.Builder // keys and tokens
	room  []engine.Lease
	spare []holder // with their nonces
}

const (
	share        = 4096 // the most bytes that pieces share
	shareLeases  = 16
	shareHolders = 8 // one that is retained, such as a dead message's, retains the others
)

// many returns how many pieces to allocate at a time, no more than most.
func (a *answer) many(most int) int { return min(max(a.left, a.gone, 1), most) }

// size returns how much to allocate for a piece of n bytes and for those to come.
func (a *answer) size(n int) int { return max(n, min(n*a.many(share), share)) }

// leases returns an empty slice for the leases of a queue.
func (a *answer) leases(n int) []engine.Lease {
	if n > len(a.room) {
		a.room = make([]engine.Lease, max(n, a.many(shareLeases)))
	}
	ls := a.room[:n:n]
	a.room = a.room[n:]
	return ls
}

// holder returns a holder with an unguessable nonce.
func (a *answer) holder() *holder {
	if len(a.spare) == 0 {
		const size = len(codec.Nonce{})
		a.spare = make([]holder, a.many(shareHolders))
		var random [size * shareHolders]byte
		_, _ = rand.Read(random[:size*len(a.spare)]) // never fails
		for i := range a.spare {
			a.spare[i].nonce = codec.Nonce(random[size*i:])
		}
	}
	h := &a.spare[0]
	a.spare = a.spare[1:]
	return h
}

func (a *answer) copyBytes(s string) []byte {
	if s == "" {
		return nil
	}
	if len(s) > cap(a.bytes)-len(a.bytes) {
		a.bytes = make([]byte, 0, a.size(len(s)))
	}
	from := len(a.bytes)
	a.bytes = append(a.bytes, s...)
	return a.bytes[from:len(a.bytes):len(a.bytes)]
}

func (a *answer) copyText(s string) string {
	a.reserve(len(s))
	from := a.text.Len()
	a.text.WriteString(s)
	return a.text.String()[from:]
}

// reserve makes the next n bytes of text contiguous. It leaves earlier strings intact.
func (a *answer) reserve(n int) {
	if n > a.text.Cap()-a.text.Len() {
		a.text.Reset()
		a.text.Grow(a.size(n))
	}
}

// token returns the text of a lease's token.
func (a *answer) token(t codec.Token) string {
	var b [codec.TokenChars]byte
	a.reserve(len(b))
	from := a.text.Len()
	a.text.Write(t.Append(b[:0]))
	return a.text.String()[from:]
}

// info fills in the Info of a message but Failures; the body only on request.
func (a *answer) info(i *engine.Info, m *message, body bool) {
	i.ID, i.Queue, i.Key, i.State = m.id, a.queue, a.copyText(m.key()), m.state
	i.Due, i.Created, i.Attempt = rules.Instant(m.due), rules.Instant(m.created), m.attempt
	i.ContentType, i.Policy = m.kind.contentType, m.kind.Policy
	i.Backoff = copied(i.Backoff)
	if r := m.rare; r != nil {
		i.Headers, i.Expires = copied(r.headers), rules.Instant(r.expires)
		if n := len(r.failures); n > 0 {
			i.LastError = r.failures[n-1].Reason
		}
	}
	if body {
		i.Body = a.copyBytes(m.body())
	}
	switch m.state {
	case engine.Leased:
		i.Deadline = rules.Instant(m.end)
		i.Worker, i.Started = m.holder.worker, rules.Instant(m.holder.started)
	case engine.Dead:
		i.Died = rules.Instant(m.end)
	}
	a.left--
	a.gone++
}

// whole is info with Failures.
func (a *answer) whole(i *engine.Info, m *message, body bool) {
	a.info(i, m, body)
	if m.rare != nil {
		i.Failures = copied(m.rare.failures)
	}
}

// info returns the Info of a single message.
func (q *queue) info(m *message, body bool) (i engine.Info) {
	a := answer{queue: q.name, left: 1}
	a.whole(&i, m, body)
	return i
}
