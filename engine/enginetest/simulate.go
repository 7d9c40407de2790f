package enginetest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Simulate plays random histories one after another, each with one of the harness's faults or
// none, depending on its seed. Without a span it plays the harness's number of histories,
// from seed 1 on, which are the same everywhere. With a span it plays other histories until
// the span has passed. It stops at the first disagreement with the model and prints the seed:
// TARRY_TEST_SEED replays that history only. The harness must have a clock.
func Simulate(t *testing.T, h Harness, span time.Duration) {
	b := newBed(t, h)
	start := h.Clock.Now().Truncate(time.Hour).Add(30*time.Minute + 17*time.Second)
	one := func(seed uint64) {
		var fault *Fault
		name := "no fault"
		if i := int(seed % uint64(len(h.Faults)+1)); i > 0 {
			fault = &h.Faults[i-1]
			name = fault.Name
		}
		t.Logf("seed %d, %s", seed, name)
		b.history(seed, start, fault)
	}
	if seed, ok := b.seed(); ok {
		one(seed)
		return
	}
	began, n := time.Now(), 0
	for first := b.first(span); span > 0 && time.Since(began) < span || span == 0 && n < b.count(); n++ {
		one(first + uint64(n))
	}
	t.Logf("%d histories", n)
}

// first returns the seed of the first history.
func (b *bed) first(span time.Duration) uint64 {
	if span == 0 {
		return 1
	}
	return rand.Uint64()
}

// seed returns the value of TARRY_TEST_SEED, if that is set.
func (b *bed) seed() (seed uint64, ok bool) {
	s := os.Getenv("TARRY_TEST_SEED")
	if s == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		b.Fatalf("TARRY_TEST_SEED: %v", err)
	}
	return seed, true
}
