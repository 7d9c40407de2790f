package timer_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// play plays random tapes on new machines, and shortens one that fails.
func play(t *testing.T, tapes, length int, newMachine func(tape *[]byte) *machine) {
	t.Helper()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	run := func(tape []byte) error {
		m := newMachine(&tape)
		return m.run(tape)
	}
	for range tapes {
		tape := randomTape(random, 1+random.IntN(length))
		if err := run(tape); err != nil {
			for size := len(tape) / 2; size > 0; size /= 2 {
				for at := 0; at+size <= len(tape); {
					if shorter := slices.Delete(slices.Clone(tape), at, at+size); run(shorter) != nil {
						tape = shorter
					} else {
						at += size
					}
				}
			}
			t.Fatalf("seed %d: %v\nthe shortest tape found, %d bytes, %#v: %v", seed, err, len(tape), tape, run(tape))
		}
	}
}

var ticks = []time.Duration{1, 7, time.Microsecond, time.Millisecond, 7 * time.Millisecond, time.Second, time.Hour}

// wheelMachine is a Wheel whose tick and limits the tape begins with.
func wheelMachine(tape *[]byte) *machine {
	m := &machine{tape: *tape}
	tick, limits := ticks[m.byte()%len(ticks)], m.byte()
	w := timer.NewWheel[int](tick, epoch)
	if limits%8 != 0 {
		tighten := func() { w.Tighten(1+limits%7, limits/7%5, 1+limits/35, limits%5) }
		if tighten(); limits%3 != 0 {
			m.before = tighten // sweeps at each occasion
		}
	}
	*tape = m.tape
	m.core, m.loan, m.repaid, m.check, m.grain = w, w.Lend, w.Repaid, w.Check, newGrain(tick)
	return m
}

func ringMachine(tape *[]byte) *machine {
	m := &machine{tape: *tape, hops: true}
	tick := ticks[m.byte()%len(ticks)]
	r := timer.NewRing[int]([]int{1, 2, 60, 63, 64, 65, 200}[m.byte()%7], tick, epoch)
	*tape = m.tape
	m.core, m.loan, m.repaid, m.check, m.grain = r, r.Lend, r.Repaid, r.Check, newGrain(tick)
	return m
}

func heapMachine(*[]byte) *machine {
	h := timer.NewHeap[int](epoch)
	return &machine{core: h, loan: h.Lend, repaid: h.Repaid, check: h.Check, grain: newGrain(1), stable: true}
}

func TestWheelAgainstModel(t *testing.T) { play(t, 1000, 500, wheelMachine) }
func TestRingAgainstModel(t *testing.T)  { play(t, 300, 500, ringMachine) }
func TestHeapAgainstModel(t *testing.T)  { play(t, 300, 500, heapMachine) }

func FuzzWheel(f *testing.F) { fuzz(f, wheelMachine) }
func FuzzRing(f *testing.F)  { fuzz(f, ringMachine) }
func FuzzHeap(f *testing.F)  { fuzz(f, heapMachine) }

func fuzz(f *testing.F, newMachine func(tape *[]byte) *machine) {
	fuzzTapes(f, func(t *testing.T, tape []byte) {
		m := newMachine(&tape)
		if err := m.run(tape); err != nil {
			t.Error(err)
		}
	})
}
