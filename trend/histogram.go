package trend

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// Buckets is the number of buckets of a Histogram.
const Buckets = 57

// The first bound of the buckets, and the bound half an octave above.
const (
	bound0 = 500 * time.Microsecond
	bound1 = 707_107 * time.Nanosecond // √2 × bound0
)

// Bounds returns the upper bounds of a Histogram's buckets. The first bucket ends at half a
// millisecond, and each later bound is √2 times the one before. The last bucket has no upper
// bound: it holds durations longer than 26 hours.
func Bounds() (all [Buckets - 1]time.Duration) {
	for i := range all {
		all[i] = bound(i)
	}
	return all
}

func bound(i int) time.Duration {
	if i&1 == 0 {
		return bound0 << (i / 2)
	}
	return bound1 << (i / 2)
}

// bucket returns the bucket of a duration.
func bucket(d time.Duration) int {
	if d < bound0 {
		return 0
	}
	octave := bits.Len64(uint64(d/bound0)) - 1
	i := 2*octave + 1
	if i < Buckets-1 && d >= bound(i) {
		i++
	}
	return min(i, Buckets-1)
}

// Histogram counts durations in buckets.
type Histogram struct {
	Counts [Buckets]uint64 // see Bounds
	Max    time.Duration   // the longest
}

func (h *Histogram) observe(d time.Duration) {
	h.Counts[bucket(d)]++
	h.Max = max(h.Max, d)
}

func (h *Histogram) add(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Max = max(h.Max, o.Max)
}

// Count returns the number of durations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration that the given share of all durations, from 0 to 1, do not
// exceed. ok is false if there are no durations. Because of the buckets the result may be
// off by a factor of √2, or by half a millisecond for durations shorter than that.
func (h *Histogram) Quantile(share float64) (d time.Duration, ok bool) {
	all := h.Count()
	if all == 0 {
		return 0, false
	}
	rank := min(max(share, 0), 1) * float64(all)
	below := 0.0
	for i, n := range h.Counts {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		part := (rank - below) / float64(n)
		switch i {
		case 0:
			d = time.Duration(part * float64(bound0))
		case Buckets - 1:
			d = h.Max
		default:
			d = time.Duration(float64(bound(i-1)) * math.Pow(math.Sqrt2, part))
		}
		return min(d, h.Max), true
	}
	return h.Max, true
}

// Kind is a kind of event that is counted.
type Kind int

// The kinds of events.
const (
	Pushed    Kind   = iota // successful pushes, including those that kept the existing message
	Leased                  // including claims
	Acked                   // handled, or dropped by a worker's guard
	Retried                 // failed, to be tried again
	Released                // snoozed, or released unhandled
	Lost                    // leases found lost when they were settled
	Died                    // attempts used up, or buried
	Expired                 // dropped past their expiry
	Cancelled               // successful cancels
	Kinds     = iota        // number of kinds
)

var kindNames = [Kinds]string{"pushed", "leased", "acked", "retried", "released", "lost", "died", "expired", "cancelled"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if k >= 0 && k < Kinds {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Slot is the activity in a period.
type Slot struct {
	Counts   [Kinds]uint64 // by Kind
	Lateness Histogram     // from due to the start of handling; outside this process's workers, to the lease
	Handling Histogram     // duration of handlers in this process
}

// add adds the counts of o.
func (s *Slot) add(o *Slot) {
	for i, n := range o.Counts {
		s.Counts[i] += n
	}
	s.Lateness.add(&o.Lateness)
	s.Handling.add(&o.Handling)
}

// A slot is encoded in varints: a mask of the nonzero counts, these counts, and the two
// histograms. A histogram starts with the number of its nonempty buckets. Then, for each of
// them, come the number of empty buckets just before it, and its count. The longest duration
// is last, unless all buckets are empty.

func (s *Slot) append(b []byte) []byte {
	mask := uint64(0)
	for i, n := range s.Counts {
		if n != 0 {
			mask |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, mask)
	for _, n := range s.Counts {
		if n != 0 {
			b = binary.AppendUvarint(b, n)
		}
	}
	return s.Handling.append(s.Lateness.append(b))
}

func (h *Histogram) append(b []byte) []byte {
	some := uint64(0)
	for _, n := range h.Counts {
		if n != 0 {
			some++
		}
	}
	b = binary.AppendUvarint(b, some)
	if some == 0 {
		return b
	}
	last := -1
	for i, n := range h.Counts {
		if n != 0 {
			b = binary.AppendUvarint(b, uint64(i-last-1))
			b = binary.AppendUvarint(b, n)
			last = i
		}
	}
	return binary.AppendUvarint(b, uint64(h.Max))
}

// reader reads varints that append has written.
type reader []byte

func (r *reader) next() uint64 {
	v, n := binary.Uvarint(*r)
	*r = (*r)[n:]
	return v
}

// read adds a slot that append has written.
func (s *Slot) read(r *reader) {
	mask := r.next()
	for i := range s.Counts {
		if mask&(1<<i) != 0 {
			s.Counts[i] += r.next()
		}
	}
	s.Lateness.read(r)
	s.Handling.read(r)
}

func (h *Histogram) read(r *reader) {
	some := r.next()
	if some == 0 {
		return
	}
	for i := -1; some > 0; some-- {
		i += int(r.next()) + 1
		h.Counts[i] += r.next()
	}
	h.Max = max(h.Max, time.Duration(r.next()))
}
