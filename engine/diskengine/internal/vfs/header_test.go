package vfs

import (
	"bytes"
	"errors"
	"testing"
)

// TestNames: each number has one name, and other names have none.
func TestNames(t *testing.T) {
	const logs = Numbered(".log")
	for _, n := range []uint64{0, 1, 255, 1<<64 - 1} {
		if got, ok := logs.Parse(logs.Name("/dir", n)); got != n || !ok {
			t.Errorf("%d: %d, %v", n, got, ok)
		}
	}
	for _, name := range []string{"", "1.log", "000000000000000G.log", "000000000000000A.log", "00000000000000001.log", "+000000000000001.log", "0000000000000001", "0000000000000001.run", "LOCK"} {
		if n, ok := logs.Parse(name); ok {
			t.Errorf("%q is taken for %d", name, n)
		}
	}
}

// TestHeader: a change of any bit is noticed, another seed too, and another version is no damage.
func TestHeader(t *testing.T) {
	b := bytes.Repeat([]byte{5}, 40)
	if sum := SealHeader(b, "tarrytst", 3, 7); sum != HeaderSum(b, 7) {
		t.Errorf("the checksum is %x, SealHeader says %x", HeaderSum(b, 7), sum)
	}
	if _, reason, err := CheckHeader(b, "tarrytst", 3, 7); reason != "" || err != nil {
		t.Error(reason, err)
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if _, reason, err := CheckHeader(b, "tarrytst", 3, 7); reason == "" || err != nil {
			t.Errorf("bit %d: %v", bit, err)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if _, reason, _ := CheckHeader(b, "tarrytst", 3, 8); reason == "" {
		t.Error("another seed is not noticed")
	}
	for _, version := range []uint32{2, 4} {
		if _, reason, err := CheckHeader(b, "tarrytst", version, 7); reason != "" || !errors.Is(err, ErrVersion) {
			t.Errorf("version %d: %q, %v", version, reason, err)
		}
	}
}
