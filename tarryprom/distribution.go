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

// distribution counts durations of one series. It tells Prometheus the same as the histogram
// of client_golang with classic and native buckets, for less (docs/decisions/metrics.md):
// what is observed is counted once, in an interval that lies in one bucket of either kind,
// and added to the sum; a scrape does the rest. It may be used by many goroutines.
type distribution struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	made   time.Time
	scale  *scale
	counts []atomic.Uint64 // by interval
	sum    atomic.Uint64   // the bits of a float64, seconds
}

// observe counts a number of seconds; less than none is none.
func (h *distribution) observe(seconds float64) {
	h.counts[h.scale.interval(seconds)].Add(1)
	for seconds > 0 {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+seconds)) {
			return
		}
	}
}

// Desc is prometheus.Metric's.
func (h *distribution) Desc() *prometheus.Desc { return h.desc }

// Write is prometheus.Metric's. The count is that of the buckets; the sum may be ahead of it
// by what is being observed.
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

// halved has every two native buckets make one.
func halved(native map[int]uint64) map[int]uint64 {
	half := make(map[int]uint64, len(native))
	for key, n := range native {
		half[int(math.Ceil(float64(key)/2))] += n
	}
	return half
}

// spans is how native buckets are written: each by how much it differs from the one before,
// in runs with gaps between.
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
	if all == nil { // without a span it would be no native histogram
		all = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	return all, deltas
}

const (
	// nativeSchema has native buckets grow by the eighth root of 2: about 9 %.
	nativeSchema = 3
	perOctave    = 1 << nativeSchema

	// Native buckets lie between 2^lowest and 2^highest seconds: a microsecond and four years.
	lowest, highest = -20, 27

	// maxNativeBuckets is how many are told; of more, every two become one.
	maxNativeBuckets = 100
)

// scale is how durations are told apart: by intervals up to the bounds of classic and of
// native buckets. What is above all of them is in one more.
type scale struct {
	classic []float64 // upper bounds
	bounds  []float64 // upper bounds of the intervals, but for the last one
	keys    []int     // of the native bucket of each interval, but for the first one
	ends    []int     // the interval with which each classic bucket ends
	first   []int     // where the interval of a number is looked for: see interval
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

// A cell is what numbers are in whose exponent and first bits are the same: an eighth of an
// octave, of even size.
const cellShift = 52 - nativeSchema

var firstCell = int(math.Float64bits(math.Exp2(lowest)) >> cellShift)

// interval returns that of a number of seconds. A cell begins in the one that is noted, and
// a few further on it ends.
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

// distributions are those of one name, by the value of their label.
type distributions struct {
	desc  *prometheus.Desc
	scale *scale
	mu    sync.Mutex
	all   map[string]*distribution
}

func newDistributions(name, help string, classic []float64, label string) *distributions {
	return &distributions{desc: prometheus.NewDesc(name, help, []string{label}, nil), scale: newScale(classic), all: make(map[string]*distribution)}
}

// of returns the one with a value, which it makes if there is none. Who observes often keeps
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

// Describe is prometheus.Collector's.
func (v *distributions) Describe(ch chan<- *prometheus.Desc) { ch <- v.desc }

// Collect is prometheus.Collector's.
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
