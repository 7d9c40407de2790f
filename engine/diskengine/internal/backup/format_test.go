package backup

import (
	"errors"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
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
	vfs.SealHeader(b, magic, version+1, 0)
	if _, _, _, err := decode(b); !errors.Is(err, vfs.ErrVersion) {
		t.Errorf("a newer one: %v", err)
	}
}
