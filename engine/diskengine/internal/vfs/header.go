package vfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrVersion says that another release wrote a file, in a format that this one does not read.
var ErrVersion = errors.New("it was written by another release, in a format that this one does not read")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SealHeader writes the first 16 bytes of a header: its magic, 8 bytes, the version, and the
// checksum, which it returns. The checksum is of all other bytes of b, and begins with seed.
func SealHeader(b []byte, magic string, version, seed uint32) (sum uint32) {
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	sum = HeaderSum(b, seed)
	binary.LittleEndian.PutUint32(b[12:], sum)
	return sum
}

// HeaderSum is the checksum of a header.
func HeaderSum(b []byte, seed uint32) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, b[:12]), castagnoli, b[16:])
}

// CheckHeader checks what SealHeader wrote. If reason is not empty it says why b is no such
// header, at offset off. The error of a sound header of another version is ErrVersion.
func CheckHeader(b []byte, magic string, version, seed uint32) (off int64, reason string, err error) {
	switch {
	case len(b) < 16 || string(b[:8]) != magic:
		return 0, "it does not begin as such a file does", nil
	case binary.LittleEndian.Uint32(b[12:]) != HeaderSum(b, seed):
		return 12, "the checksum of the header does not match", nil
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return 8, "", fmt.Errorf("%w (the format is %d, this release reads %d)", ErrVersion, v, version)
	}
	return 0, "", nil
}
