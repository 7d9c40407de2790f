package memengine

import (
	"iter"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// minutes holds the messages of one state by the minute in which the state ends. Adding and
// removing take constant time, a forecast reads minutes and not messages, and a page of a
// list goes over only the minutes that it shows, and sorts little more than it shows.
type minutes struct {
	msgs *slab[message]
	n    int

	// If all messages end in one minute no map is needed.
	sole   bucket // in use when not empty
	soleAt int64
	more   map[int64]*bucket // the other minutes; none is empty
}

// bucket is an unordered list that runs through its messages.
type bucket struct {
	first uint32 // place
	n     uint32
}

// bucket returns the bucket of a minute; nil: it is empty.
func (x *minutes) bucket(at int64) *bucket {
	if x.sole.n > 0 && x.soleAt == at {
		return &x.sole
	}
	return x.more[at]
}

// make creates the bucket of a minute that has none.
func (x *minutes) make(at int64) *bucket {
	b := &x.sole
	if b.n == 0 {
		x.soleAt = at
	} else {
		if x.more == nil {
			x.more = make(map[int64]*bucket)
		}
		b = new(bucket)
		x.more[at] = b
	}
	return b
}

// buckets yields the non-empty buckets by minute, in no order.
func (x *minutes) buckets() iter.Seq2[int64, *bucket] {
	return func(yield func(int64, *bucket) bool) {
		if x.sole.n > 0 && !yield(x.soleAt, &x.sole) {
			return
		}
		for at, b := range x.more {
			if !yield(at, b) {
				return
			}
		}
	}
}

func (x *minutes) add(m *message) {
	at := rules.MinuteOf(m.end)
	b := x.bucket(at)
	if b == nil {
		b = x.make(at)
	}
	m.prev, m.next = 0, b.first
	if b.first != 0 {
		x.msgs.at(b.first).prev = m.place
	}
	b.first = m.place
	b.n++
	x.n++
}

func (x *minutes) remove(m *message) {
	at := rules.MinuteOf(m.end)
	b := x.bucket(at)
	if m.prev != 0 {
		x.msgs.at(m.prev).next = m.next
	} else {
		b.first = m.next
	}
	if m.next != 0 {
		x.msgs.at(m.next).prev = m.prev
	}
	if b.n--; b.n == 0 {
		if b != &x.sole {
			delete(x.more, at)
		}
	}
	x.n--
}

// messages yields the messages of a bucket.
func (x *minutes) messages(b *bucket) iter.Seq[*message] {
	return func(yield func(*message) bool) {
		for place := b.first; place != 0; {
			m := x.msgs.at(place)
			if !yield(m) {
				return
			}
			place = m.next
		}
	}
}

// ids appends the ids of all messages.
func (x *minutes) ids(ids []engine.ID) []engine.ID {
	for _, b := range x.buckets() {
		for m := range x.messages(b) {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// page returns the first limit messages of a span by (end, id), or with newest the last
// ones in reverse.
func (x *minutes) page(in codec.Span, newest bool, limit int) []*message {
	var keys []int64
	for at := range x.buckets() {
		if at >= rules.MinuteOf(in.Low.At) && at <= rules.MinuteOf(in.High.At) {
			keys = append(keys, at)
		}
	}
	slices.Sort(keys)
	order := byEnd
	if newest {
		slices.Reverse(keys)
		order = func(a, b *message) int { return byEnd(b, a) }
	}
	var out []*message
	cut := false // out is full, and its last message later than none that was left out
	for _, at := range keys {
		if len(out) >= limit {
			break
		}
		from := len(out)
		for m := range x.messages(x.bucket(at)) {
			if !in.Holds(m.listed()) || cut && order(m, out[limit-1]) > 0 {
				continue
			}
			if out = append(out, m); len(out)-from >= 2*(limit-from)+64 {
				slices.SortFunc(out[from:], order)
				out, cut = out[:limit], true
			}
		}
		slices.SortFunc(out[from:], order)
	}
	return out[:min(limit, len(out))]
}

// listed returns a message's place in lists.
func (m *message) listed() codec.Place { return codec.Place{At: m.end, ID: m.id} }
