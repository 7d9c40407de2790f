package redisengine

import (
	"crypto/sha1" // what scripts can compute, too
	"encoding/binary"
	"encoding/hex"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// The leases of one call share a secret, which Redis keeps with each and which stays with
// the engine that called. The nonces of their tokens are made of it, so that who knows one
// token knows no other. To settle, an engine shows the secret if it has it: that is less
// work for the script than a nonce is.

// newSecret makes a secret, 32 hexadecimal digits.
func newSecret() string {
	n := token.NewNonce()
	return hex.EncodeToString(n[:])
}

// sealed is the nonce of the token of a message that was leased with a secret: the same
// as in lua/settle.lua.
func sealed(secret token.Nonce, id engine.ID) (n token.Nonce) {
	var text [2*len(secret) + 8]byte
	hex.Encode(text[:], secret[:])
	binary.BigEndian.PutUint64(text[2*len(secret):], uint64(id))
	sum := sha1.Sum(text[:])
	copy(n[:], sum[:])
	return n
}
