package enginetest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Simulate plays random histories one after another until so much time has passed, each
// with one of the harness's faults or none, as its seed says. It stops at the first that
// does not agree with the model, and says by which seed it is played again: with the
// environment variable TARRY_TEST_SEED only that one is. They are the same each time, and others
// when the environment variable TARRY_SIMULATE is set. The harness has a clock.
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
	first := uint64(1)
	if os.Getenv("TARRY_SIMULATE") != "" {
		first = rand.Uint64()
	}
	for seed := first; time.Since(began) < span; seed++ {
		one(seed)
		n++
	}
	t.Logf("%d histories", n)
}

// seed is the one of the environment variable TARRY_TEST_SEED, if that is set.
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
