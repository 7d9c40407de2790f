package memtable

import "testing"

// TestExpect has entries expected, in queues that are there and not, and finds and counts the same as
// before.
func TestExpect(t *testing.T) {
	t.Parallel()
	r := small()
	defer r.Close()
	r.Expect([]Expected{{Queue: 1, Key: "nobody"}})
	const n = 3 * 4096
	for id := uint64(1); id <= n; id++ {
		if id == n/2 {
			r.Seal()
		}
		r.Add(message(id))
	}
	r.Expect(nil)
	for at := uint64(1); at <= n; at += ExpectMost {
		var some [ExpectMost]Expected
		for i := range some {
			e := message(at + uint64(i))
			some[i] = Expected{e.Queue + uint32(i)%2, string(e.Key[:len(e.Key)*(i%3)/2]), e.At}
		}
		r.Expect(some[:1+at%ExpectMost])
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
