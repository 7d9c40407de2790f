package rules

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var start = time.UnixMilli(1893456000000)

// Whoever asks whenever Next says, and somewhat later, gets what the rate gives.
func TestRateIsKept(t *testing.T) {
	for _, r := range []Rate{{1000, 100}, {1000, 10}, {10, 1}, {0.5, 1}, {333, 33}, {1e6, 1e5}, {3, 5}} {
		var b Bucket
		rng := rand.New(rand.NewPCG(1, uint64(r.Burst)))
		now, passed := start, int64(b.Allows(start, r))
		if passed != r.Burst {
			t.Errorf("%+v: a full bucket holds %d", r, passed)
		}
		b.Take(int(passed), r)
		const span = 20 * time.Second
		for {
			next := b.Next(r)
			if !next.After(now) {
				t.Fatalf("%+v: at %v the next is at %v", r, now.Sub(start), next.Sub(start))
			}
			now = next.Truncate(time.Millisecond).Add(time.Millisecond + time.Duration(rng.Int64N(int64(time.Millisecond))))
			if now.Sub(start) > span {
				break
			}
			n := b.Allows(now, r)
			if n < 1 {
				t.Fatalf("%+v: nothing passes when the next was said to", r)
			}
			b.Take(n, r)
			passed += int64(n)
		}
		want := r.PerSecond*span.Seconds() + float64(r.Burst)
		if got := float64(passed); got > want+1 || got < want*0.98-1-r.PerSecond/100 {
			t.Errorf("%+v: %v passed in 20 s, want %v", r, got, want)
		}
	}
}

// At the least rate with the largest burst, which takes ten years to gather, all pass that may.
func TestSlowestRate(t *testing.T) {
	r := Rate{engine.MinRate, int64(engine.MinRate * engine.MaxRest.Seconds())}
	var b Bucket
	if n := b.Allows(start, r); int64(n) != r.Burst {
		t.Errorf("%d of %d pass", n, r.Burst)
	}
	b.Take(int(r.Burst), r)
	if n := b.Allows(start, r); n != 0 || !b.Next(r).Equal(start.Add(24*time.Hour)) {
		t.Errorf("then %d, the next at %v", n, b.Next(r))
	}
}

// No span of time lets more pass than its share and a burst.
func TestNeverMoreThanRateAndBurst(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for range 200 {
		r := Rate{PerSecond: 0.1 + rng.Float64()*100, Burst: 1 + rng.Int64N(20)}
		var b Bucket
		now, passed := start, 0
		for range 500 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second) / 10))
			n := b.Allows(now, r)
			n = rng.IntN(n + 1)
			b.Take(n, r)
			passed += n
			if most := float64(r.Burst) + now.Sub(start).Seconds()*r.PerSecond*1.0001; float64(passed) > most {
				t.Fatalf("%+v: %d in %v", r, passed, now.Sub(start))
			}
		}
	}
}

func TestClockSetBack(t *testing.T) {
	r := Rate{PerSecond: 1, Burst: 3}
	var b Bucket
	if n := b.Allows(start, r); n != 3 {
		t.Fatal(n)
	}
	b.Take(3, r)
	back := start.Add(-time.Hour)
	if n := b.Allows(back, r); n != 0 {
		t.Errorf("%d pass when the clock has been set back", n)
	}
	if next := b.Next(r); !next.Equal(back.Add(time.Second)) {
		t.Errorf("the next is in %v", next.Sub(back))
	}
}

// A rate that is changed acts at once.
func TestChangedRate(t *testing.T) {
	var b Bucket
	slow, fast := Rate{PerSecond: 0.01, Burst: 1}, Rate{PerSecond: 1000, Burst: 10}
	b.Take(b.Allows(start, slow), slow)
	if n := b.Allows(start.Add(time.Second), fast); n != 10 {
		t.Errorf("%d pass", n)
	}
}

// A burst that takes longer to gather than a duration lasts passes all the same.
func TestHugeBurst(t *testing.T) {
	day := 24 * time.Hour
	r := Rate{PerSecond: 1 / day.Seconds(), Burst: 1_000_000}
	var b Bucket
	n := b.Allows(start, r)
	if n < 100_000 {
		t.Errorf("%d pass at once", n)
	}
	b.Take(n, r)
	for range 3 {
		next := b.Next(r)
		if n := b.Allows(next.Add(-time.Second), r); n != 0 {
			t.Errorf("%d pass before the next", n)
		}
		if n := b.Allows(next, r); n != 1 {
			t.Fatalf("%d pass when the next was said to", n)
		}
		b.Take(1, r)
	}
}

// What passes is a matter of the wall clock, and so is when: what is said of one that has
// stepped since would be of another time.
func TestWallClock(t *testing.T) {
	r := Rate{PerSecond: 1, Burst: 1}
	var b Bucket
	b.Take(b.Allows(time.Now(), r), r)
	b.Allows(time.Now(), r)
	if next := b.Next(r); next != next.Round(0) {
		t.Errorf("the next is at %v", next)
	}
}
