// Package crc goes back in a checksum: of a file whose first bytes are lost, which its checksums begin
// with, the others tell what these were worth. Checksums are CRC-32C, as hash/crc32 has it.
package crc

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

var (
	table = crc32.MakeTable(crc32.Castagnoli)

	// at are the indexes of the table by the highest bytes of what stands there: no two are the same.
	at = func() (at [256]byte) {
		for i, v := range table {
			at[v>>24] = byte(i)
		}
		return at
	}()
)

// Before is the checksum from which some bytes lead to another: crc32.Update(Before(c, b), table, b) is c.
func Before(after uint32, b []byte) uint32 {
	after = ^after
	for _, c := range slices.Backward(b) {
		i := at[after>>24]
		after = (after^table[i])<<8 | uint32(i^c)
	}
	return ^after
}

// Preimage is a number whose eight bytes, the least significant first, have a checksum.
func Preimage(sum uint32) uint64 {
	var zeros [4]byte
	high := ^Before(sum, zeros[:]) ^ ^crc32.Checksum(zeros[:], table)
	b := binary.LittleEndian.AppendUint32(zeros[:], high)
	return binary.LittleEndian.Uint64(b)
}
