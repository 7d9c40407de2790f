package redisengine

import (
	"crypto/sha1" // scripts can compute it, too
	"encoding/binary"
	"encoding/hex"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// The leases of one call share a secret. Redis stores it with each lease; the client that
// leased keeps it to itself. The nonces of the tokens are derived from it, so that a token
// reveals no other token. An engine that knows the secret settles with it, which is cheaper
// for the script than checking a nonce.

// newSecret returns a secret of 32 hexadecimal digits.
func newSecret() string {
	n := codec.NewNonce()
	return hex.EncodeToString(n[:])
}

// sealed derives the nonce of a message's token from the secret, as lua/sealed.lua does.
func sealed(secret codec.Nonce, id engine.ID) (n codec.Nonce) {
	var text [2*len(secret) + 8]byte
	hex.Encode(text[:], secret[:])
	binary.BigEndian.PutUint64(text[2*len(secret):], uint64(id))
	sum := sha1.Sum(text[:])
	copy(n[:], sum[:])
	return n
}
