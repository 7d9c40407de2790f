package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramAgainstSortedSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 99, 1000, 20_000} {
		var h histogram
		samples := make([]time.Duration, n)
		for i := range samples {
			samples[i] = time.Duration(math.Exp(rng.Float64() * 24)) // 1 ns to 26 s
			h.add(samples[i])
		}
		slices.Sort(samples)
		for _, q := range []float64{0.001, 0.5, 0.99, 0.999, 1} {
			want := samples[max(int(math.Ceil(q*float64(n))), 1)-1]
			got := h.quantile(q)
			if got < want || float64(got) > float64(want)*1.01+1 {
				t.Errorf("n %d: quantile %v is %s, want %s", n, q, got, want)
			}
		}
	}
}

func TestHistogramBounds(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("the quantile of nothing is not 0")
	}
	h.add(-5)
	h.add(math.MaxInt64)
	if h.quantile(0.5) != 0 || h.quantile(1) != math.MaxInt64 {
		t.Errorf("%d %d", h.quantile(0.5), h.quantile(1))
	}
	for v := int64(1); v > 0; v <<= 1 {
		for _, v := range []int64{v - 1, v, v + 1, v + v/3} {
			b := bucket(v)
			if upper(b) < v || bucket(upper(b)) != b || (b > 0 && upper(b-1) >= v) {
				t.Fatalf("%d is in bucket %d, which ends at %d", v, b, upper(b))
			}
		}
	}
}
