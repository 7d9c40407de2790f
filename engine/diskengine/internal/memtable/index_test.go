package memtable

import (
	"math/rand/v2"
	"testing"
)

// TestIndex compares an index with a map, with hashes that are spread and that crowd.
func TestIndex(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func(rng *rand.Rand, i int) uint32{
		"spread":      func(rng *rand.Rand, _ int) uint32 { return rng.Uint32() },
		"crowded":     func(rng *rand.Rand, _ int) uint32 { return rng.Uint32() & 0xff0001ff },
		"first bits":  func(_ *rand.Rand, i int) uint32 { return uint32(i) << 20 },
		"end of page": func(rng *rand.Rand, _ int) uint32 { return rng.Uint32() | (pageSlots - 4) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 1))
			x := newIndex(newTestPool())
			all := map[ref]uint32{}
			check := func() {
				for r, h := range all {
					if x.find(h, func(o ref) bool { return o == r }) != r {
						t.Fatalf("seed %d: %d is not found", seed, r)
					}
				}
				if x.n != len(all) {
					t.Fatalf("seed %d: %d entries, want %d", seed, x.n, len(all))
				}
				if len(x.dir) > 1<<14 || len(x.pages) > 1<<12 {
					t.Fatalf("%d entries take %d pages and a directory of %d", len(all), len(x.pages), len(x.dir))
				}
			}
			next := ref(1)
			for _, keep := range []int{2000, 100, 0} {
				for range 3000 {
					h := hash(rng, int(next))
					x.insert(h, next)
					all[next] = h
					next++
				}
				check()
				for r, h := range all {
					if len(all) == keep {
						break
					}
					x.remove(h, r)
					delete(all, r)
					if x.find(h, func(o ref) bool { return o == r }) != 0 {
						t.Fatalf("seed %d: %d is found when it has gone", seed, r)
					}
				}
				check()
			}
		})
	}
}
