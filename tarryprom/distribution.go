package tarryprom

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// distribution counts the durations of one series. It exports the same as client_golang's
// histogram with classic and native buckets, at less cost (docs/decisions/metrics.md). An
// observation is one count in an interval and one addition to the sum. Each interval lies in
// one bucket of either kind, so a scrape can do the rest. It is safe for concurrent use.
type distribution struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	made   time.Time
	scale  *scale
	counts []atomic.Uint64 // by interval
	sum    atomic.Uint64   // the bits of a float64, seconds
}

// observe counts a number of seconds; a negative one counts as 0.
func (h *distribution) observe(seconds float64) {
	h.counts[h.scale.interval(seconds)].Add(1)
	for seconds > 0 {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+seconds)) {
			return
		}
	}
}

// Desc implements prometheus.Metric.
func (h *distribution) Desc() *prometheus.Desc { return h.desc }

// Write implements prometheus.Metric. The count is that of the buckets; the sum may be ahead
// of it by observations in progress.
func (h *distribution) Write(out *dto.Metric) error {
	sum := math.Float64frombits(h.sum.Load())
	d := &dto.Histogram{SampleSum: &sum, CreatedTimestamp: timestamppb.New(h.made), Schema: new(int32), ZeroThreshold: new(float64), ZeroCount: new(uint64)}
	var (
		total  uint64
		native = make(map[int]uint64)
		at     = 0
	)
	for i := range h.counts {
		n := h.counts[i].Load()
		if i == 0 {
			*d.ZeroCount = n
		} else if n > 0 {
			native[h.scale.keys[i]] += n
		}
		total += n
		for at < len(h.scale.classic) && h.scale.ends[at] == i {
			d.Bucket = append(d.Bucket, &dto.Bucket{UpperBound: &h.scale.classic[at], CumulativeCount: new(total)})
			at++
		}
	}
	d.SampleCount = &total
	*d.Schema, *d.ZeroThreshold = nativeSchema, h.scale.bounds[0]
	for len(native) > maxNativeBuckets {
		*d.Schema--
		native = halved(native)
	}
	d.PositiveSpan, d.PositiveDelta = spans(native)
	out.Label, out.Histogram = h.labels, d
	return nil
}

// halved merges every two native buckets.
func halved(native map[int]uint64) map[int]uint64 {
	half := make(map[int]uint64, len(native))
	for key, n := range native {
		half[int(math.Ceil(float64(key)/2))] += n
	}
	return half
}

// spans encodes native buckets: runs with gaps between them, and each count as the
// difference from the previous one.
func spans(native map[int]uint64) (all []*dto.BucketSpan, deltas []int64) {
	keys := make([]int, 0, len(native))
	for key := range native {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	next, last := 0, int64(0)
	for i, key := range keys {
		if i == 0 || key != next {
			all = append(all, &dto.BucketSpan{Offset: new(int32(key - next)), Length: new(uint32(0))})
		}
		*all[len(all)-1].Length++
		n := int64(native[key])
		deltas = append(deltas, n-last)
		next, last = key+1, n
	}
	if all == nil { // a native histogram needs a span
		all = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	return all, deltas
}

const (
	// nativeSchema makes native buckets grow by the eighth root of 2, about 9 %.
	nativeSchema = 3
	perOctave    = 1 << nativeSchema

	// Native buckets lie between 2^lowest and 2^highest seconds: a microsecond and four
	// years.
	lowest, highest = -20, 27

	// maxNativeBuckets is the most that are exported; if there are more, every two are
	// merged.
	maxNativeBuckets = 100
)

// scale divides durations into intervals at the bounds of classic and native buckets. The last
// interval has all durations above the bounds.
type scale struct {
	classic []float64 // upper bounds
	bounds  []float64 // upper bounds of all intervals but the last
	keys    []int     // native bucket of each interval; not used for the first
	ends    []int     // last interval of each classic bucket
	first   []int     // where the search begins: see interval
}

func newScale(classic []float64) *scale {
	s := &scale{classic: classic}
	for key := lowest * perOctave; key <= highest*perOctave; key++ {
		s.bounds = append(s.bounds, math.Exp2(float64(key)/perOctave))
	}
	s.bounds = append(s.bounds, classic...)
	slices.Sort(s.bounds)
	s.bounds = slices.Compact(s.bounds)
	key := lowest * perOctave
	for _, b := range append(slices.Clone(s.bounds), math.Inf(1)) {
		for b > math.Exp2(float64(key)/perOctave) && key <= highest*perOctave {
			key++
		}
		s.keys = append(s.keys, key)
	}
	for _, c := range classic {
		i, _ := slices.BinarySearch(s.bounds, c)
		s.ends = append(s.ends, i)
	}
	for cell := range (highest - lowest) * perOctave {
		from := math.Float64frombits(uint64(cell+firstCell) << cellShift)
		i, _ := slices.BinarySearch(s.bounds, from)
		s.first = append(s.first, i)
	}
	return s
}

// A cell contains the numbers with the same exponent and first bits: an eighth of an octave,
// in equal parts.
const cellShift = 52 - nativeSchema

var firstCell = int(math.Float64bits(math.Exp2(lowest)) >> cellShift)

// interval returns the interval of a number of seconds. A table has the interval in which
// its cell begins; the search ends a few intervals later.
func (s *scale) interval(seconds float64) int {
	if !(seconds > s.bounds[0]) {
		return 0
	}
	cell := int(math.Float64bits(seconds)>>cellShift) - firstCell
	if cell >= len(s.first) {
		return len(s.bounds)
	}
	i := s.first[cell]
	for seconds > s.bounds[i] {
		i++
	}
	return i
}

// distributions are the distributions of one name by the value of their label.
type distributions struct {
	desc  *prometheus.Desc
	scale *scale
	mu    sync.Mutex
	all   map[string]*distribution
}

func newDistributions(name, help string, classic []float64, label string) *distributions {
	return &distributions{desc: prometheus.NewDesc(name, help, []string{label}, nil), scale: newScale(classic), all: make(map[string]*distribution)}
}

// of returns the distribution of a value and creates it if needed. Frequent callers cache
// it.
func (v *distributions) of(value string) *distribution {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.all[value]
	if h == nil {
		h = &distribution{desc: v.desc, labels: prometheus.MakeLabelPairs(v.desc, []string{value}), made: time.Now(),
			scale: v.scale, counts: make([]atomic.Uint64, len(v.scale.bounds)+1)}
		v.all[value] = h
	}
	return h
}

// Describe implements prometheus.Collector.
func (v *distributions) Describe(ch chan<- *prometheus.Desc) { ch <- v.desc }

// Collect implements prometheus.Collector.
func (v *distributions) Collect(ch chan<- prometheus.Metric) {
	v.mu.Lock()
	all := make([]*distribution, 0, len(v.all))
	for _, h := range v.all {
		all = append(all, h)
	}
	v.mu.Unlock()
	for _, h := range all {
		ch <- h
	}
}
