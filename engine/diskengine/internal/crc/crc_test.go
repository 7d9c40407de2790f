package crc

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

func TestBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, b := rapid.Uint32().Draw(t, "before"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		if got := Before(crc32.Update(before, table, b), b); got != before {
			t.Errorf("%x, want %x", got, before)
		}
	})
}

func TestPreimage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Uint32().Draw(t, "sum")
		if got := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, Preimage(want)), table); got != want {
			t.Errorf("%x, want %x", got, want)
		}
	})
}
