package names

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSet compares a set with a map that is sorted each time, while names come and go.
func TestSet(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var s Set
	all := make(map[string]bool)
	for i := range 20_000 {
		name := fmt.Sprintf("q%d", r.IntN(6000))
		if r.IntN(20_000) > i { // more come at first, and more go at the end
			s.Add(name)
			all[name] = true
		} else {
			s.Remove(name)
			delete(all, name)
		}
		if i%100 == 0 {
			sorted := slices.Sorted(maps.Keys(all))
			after, n := fmt.Sprintf("q%d", r.IntN(6000)), r.IntN(3*chunkNames)
			at, found := slices.BinarySearch(sorted, after)
			if found {
				at++
			}
			want := sorted[at:min(len(sorted), at+n)]
			if got := s.After(nil, after, n); !slices.Equal(got, want) {
				t.Fatalf("%d names after %s: %d, and not %d", n, after, len(got), len(want))
			}
			if got := s.After(nil, "", len(all)+1); !slices.Equal(got, sorted) {
				t.Fatalf("there are %d names, and not %d", len(got), len(sorted))
			}
		}
	}
}

// TestChunks: no chunk is empty or too long, and names that come in order leave no chunk half full.
func TestChunks(t *testing.T) {
	t.Parallel()
	var s Set
	const n = 40 * chunkNames
	for i := range n {
		s.Add(fmt.Sprintf("%06d", i))
	}
	if len(s.chunks) != n/chunkNames {
		t.Errorf("%d names take %d chunks", n, len(s.chunks))
	}
	for i := range n {
		if s.Remove(fmt.Sprintf("%06d", i*7919%n)); i%97 != 0 {
			continue
		}
		for _, c := range s.chunks {
			if len(c) == 0 || len(c) > chunkNames {
				t.Fatalf("a chunk has %d names", len(c))
			}
		}
	}
	if len(s.chunks) != 0 || len(s.After(nil, "", 1)) != 0 {
		t.Errorf("%d chunks are left", len(s.chunks))
	}
}
