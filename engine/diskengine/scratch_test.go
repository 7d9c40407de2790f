package diskengine

import (
	"testing"
	"unsafe"
)

// What is kept of a scratch is bounded, whatever a call has used of it.
func TestScratchIsBounded(t *testing.T) {
	s := new(scratch)
	s.soughtFor(1_000_000)
	s.turns = make([]turn, 1_000_000)
	s.touched = make([]*queue, 1_000_000)
	s.value = make([]byte, keptScratch+1)
	s.free()
	if s.sought != nil || s.turns != nil || s.touched != nil || s.value != nil {
		t.Error("more is kept than is to be")
	}
	s = new(scratch)
	s.soughtFor(100)
	s.free()
	if n := cap(s.sought) * int(unsafe.Sizeof(sought{})); n == 0 || n > keptScratch {
		t.Errorf("%d bytes are kept", n)
	}
}
