package redisengine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// fingerprint represents a queue's name in tokens, which have no room for names of 200
// bytes. The registry maps it back to the name. Should two names ever have the same one, leases of
// one of them are lost.
type fingerprint uint64

func fingerprintOf(queue string) fingerprint {
	sum := sha256.Sum256([]byte(queue))
	return fingerprint(binary.BigEndian.Uint64(sum[:]))
}

func (f fingerprint) String() string { return fmt.Sprintf("%016x", uint64(f)) }
