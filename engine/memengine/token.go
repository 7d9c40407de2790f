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

// String returns the form for callers: 43 characters that need no escaping in a
// URL.
func (t token) String() string {
	var b [tokenBytes]byte
	binary.BigEndian.PutUint64(b[0:], t.queue)
	binary.BigEndian.PutUint64(b[8:], uint64(t.id))
	copy(b[16:], t.nonce[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// parseToken reads the form that String writes.
func parseToken(s string) (t token, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != tokenBytes {
		return token{}, false
	}
	t.queue = binary.BigEndian.Uint64(b[0:])
	t.id = engine.ID(binary.BigEndian.Uint64(b[8:]))
	copy(t.nonce[:], b[16:])
	return t, true
}
