package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	bounds := Bounds()
	if bounds[0] != 500*time.Microsecond || bounds[len(bounds)-1] < 24*time.Hour {
		t.Errorf("they go from %s to %s", bounds[0], bounds[len(bounds)-1])
	}
	for i, b := range bounds {
		if i > 0 {
			if ratio := float64(b) / float64(bounds[i-1]); math.Abs(ratio-math.Sqrt2) > 1e-5 {
				t.Errorf("bound %d is %v times the one before", i, ratio)
			}
		}
		if got := bucket(b - 1); got != i {
			t.Errorf("%s falls into %d, want %d", b-1, got, i)
		}
		if got := bucket(b); got != i+1 {
			t.Errorf("%s falls into %d, want %d", b, got, i+1)
		}
	}
	for d, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, math.MaxInt64: Buckets - 1} {
		if got := bucket(d); got != want {
			t.Errorf("%s falls into %d, want %d", d, got, want)
		}
	}
}

func TestQuantilesAreNear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	if _, ok := h.Quantile(0.5); ok {
		t.Error("there is a quantile of nothing")
	}
	all := make([]time.Duration, 10_000)
	for i := range all {
		all[i] = time.Duration(math.Exp(rnd.NormFloat64()*2) * float64(20*time.Millisecond))
		h.observe(all[i])
	}
	slices.Sort(all)
	for _, share := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
		got, ok := h.Quantile(share)
		if off := float64(got) / float64(exact); !ok || got > bound0 && (off > 1.4143 || off < 1/1.4143) {
			t.Errorf("%v: %s, exactly it is %s", share, got, exact)
		}
	}
	if got, _ := h.Quantile(1); got != all[len(all)-1] {
		t.Errorf("the longest is %s, want %s", got, all[len(all)-1])
	}
}
