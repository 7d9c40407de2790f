package diskengine

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// tableCursors is how far an area of a queue has been read from each sstable that has a part of it.
type tableCursors struct {
	area    memtable.Area
	used    time.Time // the last time
	seen    uint64    // Store.Changes when the cursors were made; 0: there are none
	cursors []*cursor
}

// cursor is a place in the part of an sstable that a queue has: some entries that were read,
// and where to read more.
type cursor struct {
	src    *store.Source
	end    uint32 // where the queue's part ends
	next   uint32 // the first entry that was not read
	loaded []readyItem
	room   int  // capacity of loaded when it was read
	many   int  // how many entries to read at a time
	late   bool // some were read before, and all were due
}

const (
	leastLoad = 64 // entries that are read at a time, at least a block
	mostLoad  = 1024
	loadBytes = 1 << 20 // bytes of values after which no more are read at a time
	headBytes = 4 << 10 // bytes read of a long value: its priority is before its body
)

// forget forgets what was read.
func (l *tableCursors) forget() { l.seen, l.cursors = 0, nil }

// idle reports whether the cursors are long unused, and of sstables that may be gone by now.
func (l *tableCursors) idle(e *Engine) bool {
	return l.seen != 0 && l.seen != e.store.Changes && time.Since(l.used) >= idleCursors
}

// idleCursors is how long unused cursors may keep sstables in memory that were merged away.
const idleCursors = 10 * time.Minute

// bytes is about how much memory the cursors take.
func (l *tableCursors) bytes() (n int64) {
	for _, k := range l.cursors {
		if n += cursorBytes; len(k.loaded) > 0 {
			n += int64(k.room) * readyItemBytes
		}
	}
	return n
}

// refresh makes sure that there is a cursor in each sstable. A new one starts at from.
func (l *tableCursors) refresh(e *Engine, q *queue, from memtable.Position) {
	l.used = time.Now()
	if l.seen == e.store.Changes {
		return
	}
	old := l.cursors
	l.seen, l.cursors = e.store.Changes, nil
next:
	for _, src := range e.store.Tables.Of[l.area] {
		part, ok := src.Queue(q.num)
		if !ok {
			continue
		}
		for _, k := range old {
			if k.src == src {
				l.cursors = append(l.cursors, k)
				continue next
			}
		}
		at := min(part.To, src.Behind(sstable.Place{Queue: q.num, At: from.At, ID: from.ID}))
		l.cursors = append(l.cursors, &cursor{src: src, end: part.To, next: max(part.From, at), many: leastLoad})
	}
}

// heads makes sure that of each sstable the first live entry is read that is not before from
// and may be due before until. It returns errLack if some must be read. With timeWillDo, an
// entry with a known time need not be read.
func (l *tableCursors) heads(c *call, from memtable.Position, until int64, timeWillDo bool) error {
	var err error
	for _, k := range l.cursors {
		if k.head(c, from) || k.next == k.end {
			continue
		}
		at, exact := k.src.Floor(k.next)
		if at >= until || timeWillDo && exact && !before(memtable.Position{At: at}, from) {
			continue
		}
		// Read more at a time for a lease that uses up due messages as they are read.
		if k.late = k.late && at <= c.ms; k.late {
			k.many = min(2*k.many, mostLoad)
		} else {
			k.many = leastLoad
		}
		k.late = true
		c.lacks.cursors = append(c.lacks.cursors, reading{k, k.src, k.next, k.end, k.many})
		err = errLack
	}
	return err
}

// time is the time of the first entry that was not read, if it is live and its time is known
// anyway.
func (k *cursor) time() (at int64, known bool) {
	if k.next == k.end || !k.src.Alive(k.next) {
		return 0, false
	}
	return k.src.Floor(k.next)
}

// head passes over entries that were deleted or are before a position. It reports whether the
// next entry has been read.
func (k *cursor) head(c *call, from memtable.Position) bool {
	for {
		for len(k.loaded) > 0 {
			t := &k.loaded[0]
			if k.src.Alive(t.pos) && !before(memtable.Position{At: t.due, ID: uint64(t.id)}, from) {
				return true
			}
			k.loaded = k.loaded[1:]
		}
		k.loaded = nil
		next, ok := k.src.Live.Next(k.next, k.end)
		if !ok {
			k.next = k.end
			return false
		}
		k.next = next
		l, read := c.found.loads[k]
		delete(c.found.loads, k)
		if !read || next < l.from || next >= l.to {
			return false
		}
		k.loaded, k.next, k.room = l.items, l.to, cap(l.items)
	}
}

// upTo appends to some at most most entries that were read and are before last. It returns the
// position up to which these are all.
func (k *cursor) upTo(some []readyItem, last memtable.Position, most int) ([]readyItem, memtable.Position) {
	n := 0
	for ; n < len(k.loaded); n++ {
		t := &k.loaded[n]
		at := memtable.Position{At: t.due, ID: uint64(t.id)}
		if !before(at, last) {
			return some, last
		}
		if k.src.Alive(t.pos) {
			some = append(some, *t)
		}
		if n+1 == most {
			return some, after(at)
		}
	}
	if n > 0 && k.next < k.end {
		t := &k.loaded[n-1]
		last = memtable.Position{At: t.due, ID: uint64(t.id) + 1}
	}
	return some, last
}

// reading says which entries are to be read for a cursor.
type reading struct {
	of        *cursor
	src       *store.Source
	from, end uint32
	many      int
}

// loaded is what was read: the live entries in [from, to).
type loaded struct {
	from, to uint32
	items    []readyItem
}

// load reads entries, and passes over damaged blocks. damage is the last such error.
func (r *reading) load() (some []readyItem, to uint32, damage, err error) {
	to = min(r.end, r.src.Reach(r.from, r.many))
	left := loadBytes
	for from := r.from; from < to; {
		some, from, err = r.loadFrom(some, from, to, &left)
		if left <= 0 {
			to = from
		}
		switch {
		case errors.Is(err, sstable.ErrDamaged):
			damage, err = err, nil
		case isUnreadable(err): // the entries before the block will do for now
			block := r.src.Begin(from - 1)
			for len(some) > 0 && some[len(some)-1].pos >= block {
				some = some[:len(some)-1]
			}
			if len(some) > 0 {
				return some, block, damage, nil
			}
		}
		if err != nil {
			break
		}
	}
	return some, to, damage, err
}

// loadFrom reads until an error, or until left bytes of values are used up. next is where to
// go on.
func (r *reading) loadFrom(some []readyItem, from, to uint32, left *int) (_ []readyItem, next uint32, err error) {
	s := r.src.Scan(from, to).Heads(headBytes)
	for next = to; *left > 0 && err == nil && s.Next(); {
		e := s.Entry()
		t := readyItem{due: e.At, id: engine.ID(e.ID), pos: e.Pos, src: r.src}
		if r.src.Area == memtable.Live {
			t.priority, err = storedPriority(r.src, e)
		}
		if err == nil {
			some = append(some, t)
		}
		if *left -= len(e.Value); *left <= 0 {
			next = e.Pos + 1
		}
	}
	if err = errors.Join(err, s.Err()); isUnreadable(err) {
		next = r.src.Reach(s.At(), 1)
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return some, next, err
}
