package backup

import (
	"errors"
	"testing"
)

// TestHead: what is written is read again, and any bit that is turned is noticed.
func TestHead(t *testing.T) {
	h := head{store: 7, number: 3, taken: 1_700_000_000_000, end: 1 << 40, bytes: 12345, files: 9}
	b := h.encode()
	if got, _, reason, err := decode(b); got != h || reason != "" || err != nil {
		t.Errorf("%+v, %q, %v", got, reason, err)
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if _, _, reason, err := decode(b); reason == "" && err == nil {
			t.Errorf("bit %d was turned", bit)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(b) {
		if _, _, reason, err := decode(b[:n]); reason == "" && err == nil {
			t.Errorf("%d bytes are taken for a head", n)
		}
	}
	if _, _, reason, _ := decode(append(b, 0)); reason == "" {
		t.Error("a byte more is taken for a head")
	}
	b = h.encode()
	le.PutUint32(b[8:], version+1)
	le.PutUint32(b[12:], sum(b))
	if _, _, _, err := decode(b); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer one: %v", err)
	}
}

// TestNumberNames: what is no such name is none.
func TestNumberNames(t *testing.T) {
	for _, n := range []uint64{0, 1, 255, 1<<64 - 1} {
		if got, ok := parseNumber(numberName(n)); got != n || !ok {
			t.Errorf("%d: %d, %v", n, got, ok)
		}
	}
	for _, name := range []string{"", "1", "000000000000000G", "000000000000000A", "00000000000000001", "+000000000000001", "LOCK"} {
		if n, ok := parseNumber(name); ok {
			t.Errorf("%q is taken for %d", name, n)
		}
	}
}
