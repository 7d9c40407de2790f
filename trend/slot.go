package trend

import (
	"encoding/binary"
	"strconv"
	"time"
)

// Kind is something that happens to messages, and is counted.
type Kind int

// The kinds of what is counted.
const (
	Pushed    Kind   = iota // pushes that did not fail, also those that kept what was there
	Leased                  // claimed ones too
	Acked                   // handled, or not wanted any more by the guard of a worker
	Retried                 // failed, and come back
	Released                // put off, or given back unhandled
	Lost                    // leases that had been lost when they were to be settled
	Died                    // attempts used up, or buried
	Expired                 // dropped past their expiry
	Cancelled               // cancels that did not fail
	Kinds     = iota        // how many there are
)

var kindNames = [Kinds]string{"pushed", "leased", "acked", "retried", "released", "lost", "died", "expired", "cancelled"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if k >= 0 && k < Kinds {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Slot is what happened in some time.
type Slot struct {
	Counts   [Kinds]uint64 // by Kind
	Lateness Histogram     // from due to the start of handling, or to the lease by who is no worker of this process
	Handling Histogram     // how long the handlers of workers of this process ran
}

// add adds up.
func (s *Slot) add(o *Slot) {
	for i, n := range o.Counts {
		s.Counts[i] += n
	}
	s.Lateness.add(&o.Lateness)
	s.Handling.add(&o.Handling)
}

// A slot is written as a mask of the counts that are not 0 and these, and for each
// histogram: how many buckets are not empty, of each how many empty ones lie before it and
// what it counts, and the longest duration unless all are empty; all as varints.

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

// reader takes varints off bytes that are written by append.
type reader []byte

func (r *reader) next() uint64 {
	v, n := binary.Uvarint(*r)
	*r = (*r)[n:]
	return v
}

// read adds a slot that was written.
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
