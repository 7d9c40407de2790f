package memengine

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
)

// nonce is what makes a lease's token unguessable.
type nonce [16]byte

// token names a lease: the queue by its number, the message, and the nonce of
// this very lease.
type token struct {
	queue uint64
	id    engine.ID
	nonce nonce
}

const tokenBytes = 8 + 8 + len(nonce{})

const tokenChars = (tokenBytes*8 + 5) / 6

var tokenText = base64.RawURLEncoding.Strict()

// append appends the form for callers: 43 characters that need no escaping in a
// URL.
func (t token) append(to []byte) []byte {
	var b [tokenBytes]byte
	binary.BigEndian.PutUint64(b[0:], t.queue)
	binary.BigEndian.PutUint64(b[8:], uint64(t.id))
	copy(b[16:], t.nonce[:])
	return tokenText.AppendEncode(to, b[:])
}

// parseToken reads the form that append writes.
func parseToken(s string) (t token, ok bool) {
	var text [tokenChars]byte
	var b [tokenBytes]byte
	if copy(text[:], s); len(s) != len(text) {
		return token{}, false
	}
	if n, err := tokenText.Decode(b[:], text[:]); err != nil || n != len(b) {
		return token{}, false
	}
	t.queue = binary.BigEndian.Uint64(b[0:])
	t.id = engine.ID(binary.BigEndian.Uint64(b[8:]))
	copy(t.nonce[:], b[16:])
	return t, true
}
