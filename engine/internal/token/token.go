// Package token holds what callers are handed and bring back, as text that needs no
// escaping in a URL: the tokens of leases, and the cursors of lists.
package token

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
)

// Nonce is what makes a token unguessable.
type Nonce [16]byte

// NewNonce returns one that nobody can know.
func NewNonce() (n Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// Token names a lease.
type Token struct {
	Queue uint64 // as the engine numbers it
	ID    engine.ID
	Nonce Nonce // of this very lease
}

const size = 8 + 8 + len(Nonce{})

// Chars is how long the text of a token is.
const Chars = (size*8 + 5) / 6

// coding has one text for each token: what is not exactly that is none.
var coding = base64.RawURLEncoding.Strict()

// String returns the form for callers.
func (t Token) String() string {
	var text [Chars]byte
	return string(t.Append(text[:0]))
}

// Append appends what String returns.
func (t Token) Append(b []byte) []byte {
	var raw [size]byte
	binary.BigEndian.PutUint64(raw[0:], t.Queue)
	binary.BigEndian.PutUint64(raw[8:], uint64(t.ID))
	copy(raw[16:], t.Nonce[:])
	return coding.AppendEncode(b, raw[:])
}

// Parse reads the form that String writes.
func Parse(s string) (t Token, ok bool) {
	var raw [size]byte
	if !decode(raw[:], s) {
		return Token{}, false
	}
	t.Queue = binary.BigEndian.Uint64(raw[0:])
	t.ID = engine.ID(binary.BigEndian.Uint64(raw[8:]))
	copy(t.Nonce[:], raw[16:])
	return t, true
}

// decode fills raw with what s says, and reports whether it says that and no more.
func decode(raw []byte, s string) bool {
	if len(s) != coding.EncodedLen(len(raw)) {
		return false
	}
	var text [Chars]byte
	// It passes over line breaks, which leave less.
	n, err := coding.Decode(raw, text[:copy(text[:], s)])
	return err == nil && n == len(raw)
}
