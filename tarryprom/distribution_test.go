package tarryprom

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func written(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram()
}

// nativeBuckets are the counts that spans and deltas stand for.
func nativeBuckets(h *dto.Histogram) map[int]int64 {
	all := make(map[int]int64)
	key, n, deltas := 0, int64(0), h.GetPositiveDelta()
	for _, s := range h.GetPositiveSpan() {
		key += int(s.GetOffset())
		for range s.GetLength() {
			n, deltas = n+deltas[0], deltas[1:]
			if n != 0 {
				all[key] = n
			}
			key++
		}
	}
	return all
}

// What is told is what client_golang's histogram tells of the same.
func TestDistributionIsAHistogram(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for name, values := range map[string]func() float64{
		"nothing":     nil,
		"near 1 ms":   func() float64 { return .001 * math.Exp(random.NormFloat64()/3) },
		"of all size": func() float64 { return math.Exp2(-19.9 + 46.8*random.Float64()) },
		"at bounds":   func() float64 { return latenessBuckets[random.IntN(len(latenessBuckets))] },
		"at powers":   func() float64 { return math.Exp2(float64(random.IntN(40) - 15)) },
		"none":        func() float64 { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			ours := newDistributions("x", "x", latenessBuckets, "queue").of("q")
			told := func(factor float64) prometheus.Histogram {
				return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", Buckets: latenessBuckets,
					NativeHistogramBucketFactor: factor, NativeHistogramZeroThreshold: math.Exp2(lowest)})
			}
			all := map[int32]prometheus.Histogram{nativeSchema: told(1.1), nativeSchema - 1: told(1.2), nativeSchema - 2: told(1.5)}
			for range 5000 {
				if values == nil {
					break
				}
				v := values()
				ours.observe(v)
				for _, h := range all {
					h.Observe(v)
				}
			}
			got := written(t, ours)
			theirs := all[got.GetSchema()]
			if theirs == nil {
				t.Fatalf("schema %d", got.GetSchema())
			}
			want := written(t, theirs)
			if got.GetSampleCount() != want.GetSampleCount() || math.Abs(got.GetSampleSum()-want.GetSampleSum()) > 1e-9*want.GetSampleSum() ||
				got.GetZeroCount() != want.GetZeroCount() || got.GetZeroThreshold() != want.GetZeroThreshold() {
				t.Errorf("told is\n%v, want\n%v", got, want)
			}
			if !slices.EqualFunc(got.GetBucket(), want.GetBucket(), func(a, b *dto.Bucket) bool {
				return a.GetUpperBound() == b.GetUpperBound() && a.GetCumulativeCount() == b.GetCumulativeCount()
			}) {
				t.Errorf("the classic buckets are\n%v, want\n%v", got.GetBucket(), want.GetBucket())
			}
			g := nativeBuckets(got)
			if !maps.Equal(g, nativeBuckets(want)) {
				t.Errorf("the native buckets are\n%v, want\n%v", g, nativeBuckets(want))
			}
			if len(g) > maxNativeBuckets || len(got.GetPositiveSpan()) == 0 {
				t.Errorf("%d native buckets in %d spans", len(g), len(got.GetPositiveSpan()))
			}
		})
	}
}

// What lies beyond all bounds, or is no number, is counted and harms nothing.
func TestDistributionOfTheUnheardOf(t *testing.T) {
	d := newDistributions("x", "x", latenessBuckets, "queue").of("q")
	for _, v := range []float64{-1, math.NaN(), math.Inf(-1), 1e-12, 1e12, math.MaxFloat64} {
		d.observe(v)
	}
	got := written(t, d)
	if got.GetSampleCount() != 6 || got.GetZeroCount() != 4 || got.GetSampleSum() != math.MaxFloat64 {
		t.Errorf("told is %v", got)
	}
	if native := nativeBuckets(got); len(native) != 1 || native[highest*perOctave+1] != 2 {
		t.Errorf("the native buckets are %v", native)
	}
	if last := got.GetBucket()[len(latenessBuckets)-1]; last.GetCumulativeCount() != 4 {
		t.Errorf("the last bucket is %v", last)
	}
}

// Nothing is lost of what many observe while others scrape.
func TestDistributionOfMany(t *testing.T) {
	all := newDistributions("x", "x", latenessBuckets, "queue")
	var observers sync.WaitGroup
	for range 8 {
		observers.Go(func() {
			d := all.of("q")
			for range 1000 {
				d.observe(time.Millisecond.Seconds())
			}
		})
	}
	for range 10 {
		h := written(t, all.of("q"))
		if last := h.GetBucket()[len(latenessBuckets)-1].GetCumulativeCount(); last != h.GetSampleCount() {
			t.Errorf("%d in the buckets, %d in all", last, h.GetSampleCount())
		}
	}
	observers.Wait()
	if h := written(t, all.of("q")); h.GetSampleCount() != 8000 || math.Abs(h.GetSampleSum()-8) > 1e-9 {
		t.Errorf("told is %v", h)
	}
}
