package redisengine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"

	"github.com/tarryhq/tarry/engine"
)

// fingerprint stands for a queue's name in tokens, which have no room for names of
// 200 bytes. The registry finds the name again.
type fingerprint [8]byte

func fingerprintOf(queue string) (f fingerprint) {
	sum := sha256.Sum256([]byte(queue))
	copy(f[:], sum[:])
	return f
}

func (f fingerprint) String() string { return hex.EncodeToString(f[:]) }

// nonceBytes is the length of a lease's secret; scripts know it in hexadecimal.
const nonceBytes = 12

// token names a lease: the queue, the message, and the nonce of this very lease.
type token struct {
	queue fingerprint
	id    engine.ID
	nonce [nonceBytes]byte
}

const tokenBytes = 8 + 8 + nonceBytes

// String returns the form for callers: 38 characters that need no escaping in a URL.
func (t token) String() string {
	var b [tokenBytes]byte
	copy(b[0:], t.queue[:])
	binary.BigEndian.PutUint64(b[8:], uint64(t.id))
	copy(b[16:], t.nonce[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// parseToken reads the form that String writes.
func parseToken(s string) (t token, ok bool) {
	if len(s) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return token{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != tokenBytes {
		return token{}, false
	}
	copy(t.queue[:], b[0:])
	t.id = engine.ID(binary.BigEndian.Uint64(b[8:]))
	copy(t.nonce[:], b[16:])
	return t, true
}
