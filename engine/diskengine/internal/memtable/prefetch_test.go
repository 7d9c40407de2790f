package memtable

import "testing"

// TestExpect has entries expected, in queues that are there and not, and finds and counts the same as
// before.
func TestExpect(t *testing.T) {
	t.Parallel()
	r := small()
	defer r.Close()
	r.Expect(1, "nobody")
	const n = 3 * 4096
	for id := uint64(1); id <= n; id++ {
		if id == n/2 {
			r.Seal()
		}
		r.Add(message(id))
	}
	for id := uint64(1); id <= n+100; id++ {
		e := message(id)
		r.Expect(e.Queue+uint32(id%2), string(e.Key))
	}
	if r.Len() != n {
		t.Errorf("%d entries", r.Len())
	}
	for id := uint64(1); id <= n; id++ {
		e := message(id)
		if got, found := r.ByKey(e.Queue, Live, e.Key); !found || got.ID != id || got.At != e.At {
			t.Fatalf("%d is found as %d, %v", id, got.ID, found)
		}
	}
}
