package memengine

import (
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// answer makes the copies of messages that leave the engine. The small pieces of
// an answer with many messages share memory, a few kilobytes at a time: less work
// for the allocator, and who keeps one body does not keep all.
type answer struct {
	queue string
	left  int // messages still to come, at most

	bytes []byte          // bodies
	text  strings.Builder // keys and tokens
}

// share is how many bytes pieces share at most.
const share = 4096

// room is how much to allocate for a piece of n bytes and those to come.
func (a *answer) room(n int) int { return max(n, min(n*a.left, share)) }

func (a *answer) copyBytes(s string) []byte {
	if s == "" {
		return nil
	}
	if len(s) > cap(a.bytes)-len(a.bytes) {
		a.bytes = make([]byte, 0, a.room(len(s)))
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

// reserve sees to it that the next n bytes of text are one piece. What is in the
// builder before stays as it is.
func (a *answer) reserve(n int) {
	if n > a.text.Cap()-a.text.Len() {
		a.text.Reset()
		a.text.Grow(a.room(n))
	}
}

// token is the token of a lease as text.
func (a *answer) token(t token.Token) string {
	var b [token.Chars]byte
	a.reserve(len(b))
	from := a.text.Len()
	a.text.Write(t.Append(b[:0]))
	return a.text.String()[from:]
}

// info fills in what callers may see of a message; the body only when asked for.
func (a *answer) info(i *engine.Info, m *message, body bool) {
	i.ID, i.Queue, i.Key, i.State = m.id, a.queue, a.copyText(m.key()), m.state
	i.Due, i.Created, i.Attempt = instant(m.due), instant(m.created), m.attempt
	i.ContentType, i.Policy = m.kind.contentType, m.kind.Policy
	i.Backoff = copied(i.Backoff)
	if m.rare != nil {
		i.Headers, i.LastError, i.Expires = copied(m.rare.headers), m.rare.lastError, instant(m.rare.expires)
	}
	if body {
		i.Body = a.copyBytes(m.body())
	}
	switch m.state {
	case engine.Leased:
		i.Deadline = instant(m.end)
	case engine.Dead:
		i.Died = instant(m.end)
	}
	a.left--
}

// info is that of a message alone.
func (q *queue) info(m *message, body bool) (i engine.Info) {
	a := answer{queue: q.name, left: 1}
	a.info(&i, m, body)
	return i
}
