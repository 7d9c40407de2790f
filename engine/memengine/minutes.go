package memengine

import (
	"cmp"
	"slices"
)

// minutes holds the messages of one state by the minute in which that state
// ends. Adding and removing cost the same however many there are, a forecast
// looks at minutes and not at messages, and a page of a list sorts only the
// minutes that it shows.
type minutes struct {
	buckets map[int64][]*message // unordered; never empty
	n       int
}

const minute = 60_000 // milliseconds

// minuteOf numbers the minute of an instant, also of one before 1970.
func minuteOf(ms int64) int64 {
	n := ms / minute
	if ms%minute < 0 {
		n--
	}
	return n
}

func (x *minutes) add(m *message) {
	if x.buckets == nil {
		x.buckets = make(map[int64][]*message)
	}
	at := minuteOf(m.ends())
	m.slot = len(x.buckets[at])
	x.buckets[at] = append(x.buckets[at], m)
	x.n++
}

func (x *minutes) remove(m *message) {
	at := minuteOf(m.ends())
	b := x.buckets[at]
	last := len(b) - 1
	b[m.slot] = b[last]
	b[m.slot].slot = m.slot
	b[last] = nil
	if last == 0 {
		delete(x.buckets, at)
	} else {
		x.buckets[at] = b[:last]
	}
	x.n--
}

// page returns the first limit messages by (end, id) behind a place in that
// order; nil: from the start.
func (x *minutes) page(after *place, limit int) []*message {
	var keys []int64
	for at := range x.buckets {
		if after == nil || at >= minuteOf(after.end) {
			keys = append(keys, at)
		}
	}
	slices.Sort(keys)
	var out []*message
	for _, at := range keys {
		if len(out) >= limit {
			break
		}
		from := len(out)
		for _, m := range x.buckets[at] {
			if after == nil || after.before(m) {
				out = append(out, m)
			}
		}
		slices.SortFunc(out[from:], byEnd)
	}
	return out[:min(limit, len(out))]
}

// place is a place in the order of a list.
type place struct {
	end int64
	id  uint64
}

func (p *place) before(m *message) bool {
	return cmp.Or(cmp.Compare(p.end, m.ends()), cmp.Compare(p.id, uint64(m.id))) < 0
}
