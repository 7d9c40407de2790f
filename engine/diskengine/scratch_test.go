package diskengine

import (
	"testing"
	"unsafe"

	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// What is kept of a scratch is bounded, whatever a call has used of it.
func TestScratchIsBounded(t *testing.T) {
	s := new(scratch)
	s.lookupsFor(1_000_000)
	s.items = make([]store.Item, 1_000_000)
	s.touched = make([]*queue, 1_000_000)
	s.value = make([]byte, keptScratch+1)
	s.free()
	if s.lookups != nil || s.items != nil || s.touched != nil || s.value != nil {
		t.Error("more is kept than is to be")
	}
	s = new(scratch)
	s.lookupsFor(100)
	s.free()
	if n := cap(s.lookups) * int(unsafe.Sizeof(keyLookup{})); n == 0 || n > keptScratch {
		t.Errorf("%d bytes are kept", n)
	}
}
