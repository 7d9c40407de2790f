package diskengine

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/timer"
)

// TestAlarms sets and cancels alarms at random and compares them with a map.
func TestAlarms(t *testing.T) {
	for round := range 200 {
		var a alarms[uint32]
		at, handles := map[uint32]int64{}, map[uint32]timer.Handle{}
		most, now := 1+round%5, int64(1_000_000)
		for range 200 {
			what := rand.Uint32N(uint32(most))
			switch _, set := at[what]; {
			case rand.IntN(4) == 0:
				now += rand.Int64N(50)
				few := 1 + rand.IntN(most)
				for got := range a.due(now) {
					if due, set := at[got]; !set || due > now {
						t.Fatalf("%d at %d, set %v, for %d", got, now, set, due)
					}
					if delete(at, got); few == 1 {
						break
					}
					few--
				}
			case set:
				a.cancel(what, handles[what])
				delete(at, what)
			default:
				at[what] = now - 10 + rand.Int64N(100)
				handles[what] = a.set(at[what], what)
			}
			next, ok := a.next()
			if a.len() != len(at) || ok != (len(at) > 0) || ok && next != slices.Min(slices.Collect(maps.Values(at))) {
				t.Fatalf("%d alarms, the next at %d, %v; want %v", a.len(), next, ok, at)
			}
		}
	}
}
