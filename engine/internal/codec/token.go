package codec

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
)

// Nonce makes a token unguessable. That of a lease begins with when the lease began.
type Nonce [16]byte

// NewNonce returns a random nonce.
func NewNonce() (n Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// startBytes is how many bytes of a nonce say when its lease began.
const startBytes = 6

// NewNonceAt returns the nonce of a lease that begins at ms, in Unix milliseconds.
func NewNonceAt(ms int64) Nonce {
	n := NewNonce()
	n.Start(ms)
	return n
}

// Start makes n the nonce of a lease that begins at ms. The other bytes stay as they are.
func (n *Nonce) Start(ms int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(ms))
	copy(n[:startBytes], b[8-startBytes:])
}

// Started is when the lease began, in Unix milliseconds.
func (n *Nonce) Started() int64 {
	var b [8]byte
	copy(b[8-startBytes:], n[:startBytes])
	return int64(binary.BigEndian.Uint64(b[:]))
}

// Token names a lease.
type Token struct {
	Queue uint64 // the engine's number for the queue
	ID    engine.ID
	Nonce Nonce // belongs to this lease alone
}

const tokenSize = 8 + 8 + len(Nonce{})

// TokenChars is the length of a token's text.
const TokenChars = (tokenSize*8 + 5) / 6

// textCoding accepts only one text for each token.
var textCoding = base64.RawURLEncoding.Strict()

// String returns the text of a token.
func (t Token) String() string {
	var text [TokenChars]byte
	return string(t.Append(text[:0]))
}

// Append appends the text of a token.
func (t Token) Append(b []byte) []byte {
	var raw [tokenSize]byte
	binary.BigEndian.PutUint64(raw[0:], t.Queue)
	binary.BigEndian.PutUint64(raw[8:], uint64(t.ID))
	copy(raw[16:], t.Nonce[:])
	return textCoding.AppendEncode(b, raw[:])
}

// Is reports whether a text is that of t. The zero token has none.
func (t Token) Is(text string) bool {
	is, ok := ParseToken(text)
	return ok && is == t && t != Token{}
}

// ParseToken reads the text that String returns.
func ParseToken(s string) (t Token, ok bool) {
	var raw [tokenSize]byte
	if !decodeText(raw[:], s) {
		return Token{}, false
	}
	t.Queue = binary.BigEndian.Uint64(raw[0:])
	t.ID = engine.ID(binary.BigEndian.Uint64(raw[8:]))
	copy(t.Nonce[:], raw[16:])
	return t, true
}

// decodeText fills raw from s, and reports whether s encodes exactly as many bytes.
func decodeText(raw []byte, s string) bool {
	if len(s) != textCoding.EncodedLen(len(raw)) {
		return false
	}
	var text [TokenChars]byte
	// Decode skips line breaks, so fewer bytes may result.
	n, err := textCoding.Decode(raw, text[:copy(text[:], s)])
	return err == nil && n == len(raw)
}
