package sstable

import (
	"encoding/binary"

	"github.com/dchest/siphash"
)

// Key is the hash of a key in its queue. The zero Key is none.
type Key [16]byte

func (k Key) halves() (hi, lo uint64) {
	return binary.BigEndian.Uint64(k[:]), binary.BigEndian.Uint64(k[8:])
}

// Secret is a random number of a store, made with it and never shown: a client that does not know it
// cannot make keys that collide.
type Secret [16]byte

// Key returns the hash of a key: SipHash-2-4 with 128 bits.
func (s *Secret) Key(queue uint32, key string) (k Key) {
	var room [256]byte
	b := binary.LittleEndian.AppendUint32(room[:0], queue)
	b = append(b, key...)
	hi, lo := siphash.Hash128(binary.LittleEndian.Uint64(s[:]), binary.LittleEndian.Uint64(s[8:]), b)
	binary.BigEndian.PutUint64(k[:], hi)
	binary.BigEndian.PutUint64(k[8:], lo)
	return k
}
