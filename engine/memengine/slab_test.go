package memengine

import (
	"math/rand/v2"
	"testing"
)

// What is in a slab stays where it is and as it is, whatever comes and goes; what
// comes is zero, and what was emptied is given back.
func TestSlab(t *testing.T) {
	const most = 3 * shedAt * perChunk
	var s slab[int]
	kept := make(map[uint32]int)
	var places []uint32
	add := func(v int) {
		place, at := s.take()
		if _, taken := kept[place]; taken || place == 0 || *at != 0 {
			t.Fatalf("place %d with %d was given out; taken: %v", place, *at, taken)
		}
		*at, kept[place], places = v, v, append(places, place)
	}
	drop := func(i int) {
		place := places[i]
		if got := *s.at(place); got != kept[place] {
			t.Fatalf("at %d is %d, want %d", place, got, kept[place])
		}
		s.drop(place)
		if v := s.look(place); v != nil && *v != 0 {
			t.Fatalf("at %d is still %d", place, *v)
		}
		delete(kept, place)
		places[i] = places[len(places)-1]
		places = places[:len(places)-1]
	}
	for i := range most {
		add(i + 1)
		if rand.IntN(3) == 0 {
			drop(rand.IntN(len(places)))
		}
	}
	for len(places) > 0 {
		drop(rand.IntN(len(places)))
	}
	if s.n != 0 || len(s.chunks) != 0 {
		t.Errorf("%d values and %d chunks are left", s.n, len(s.chunks))
	}
	if s.look(1) != nil {
		t.Error("something is at a place of a slab that was emptied")
	}
}
