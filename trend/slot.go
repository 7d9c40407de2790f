package trend

import (
	"encoding/binary"
	"strconv"
	"time"
)

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
