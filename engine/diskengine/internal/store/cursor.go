package store

import (
	"errors"
	"time"
	"unsafe"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// Item is an entry without its value.
type Item struct {
	Due      int64 // the time by which the entry is ordered
	ID       engine.ID
	Priority uint32  // of a live message
	Pos      uint32  // in Src
	Src      *Source // nil: the entry was in a memtable
	Epoch    uint32  // Store.Epoch at that time
}

// Position is the place of the entry in its area of the queue.
func (t *Item) Position() memtable.Position {
	return memtable.Position{At: t.Due, ID: uint64(t.ID)}
}

// Spot is where the entry is in an sstable; the zero spot: it was in a memtable.
func (t *Item) Spot() Spot { return Spot{Src: t.Src, Pos: t.Pos} }

// Cursors are how far an area of a queue has been read from each sstable that has a part of it.
type Cursors struct {
	Area memtable.Area
	All  []*Cursor
	used time.Time // the last time
	seen uint64    // Store.changes when the cursors were made; 0: there are none
}

// Cursor is a place in the part of an sstable that a queue has: some entries that were read,
// and where to read more.
type Cursor struct {
	src    *Source
	end    uint32 // where the queue's part ends
	next   uint32 // the first entry that was not read
	loaded []Item
	room   int // capacity of loaded when it was read
}

const (
	loadItems = 128     // entries that are read at a time, and the rest of their block
	loadBytes = 1 << 20 // bytes of values after which no more are read at a time
	headBytes = 4 << 10 // bytes read of a long value: its state and policy are before its body

	// ItemBytes is how much memory an item takes.
	ItemBytes   = int64(unsafe.Sizeof(Item{}))
	cursorBytes = int64(unsafe.Sizeof(Cursor{})) + 8
)

// Forget forgets what was read.
func (l *Cursors) Forget() { l.seen, l.All = 0, nil }

// Idle reports whether the cursors are long unused, and of sstables that may be gone by now.
func (l *Cursors) Idle(st *Store) bool {
	return l.seen != 0 && l.seen != st.changes && time.Since(l.used) >= idleCursors
}

// idleCursors is how long unused cursors may keep sstables in memory that were merged away.
const idleCursors = 10 * time.Minute

// Bytes is about how much memory the cursors take.
func (l *Cursors) Bytes() (n int64) {
	for _, k := range l.All {
		if n += cursorBytes; len(k.loaded) > 0 {
			n += int64(k.room) * ItemBytes
		}
	}
	return n
}

// Refresh makes sure that there is a cursor in each sstable that has a part of a queue. A new
// one starts at from.
func (l *Cursors) Refresh(st *Store, queue uint32, from memtable.Position) {
	l.used = time.Now()
	if l.seen == st.changes {
		return
	}
	old := l.All
	l.seen, l.All = st.changes, nil
next:
	for _, src := range st.Tables.Of[l.Area] {
		part, ok := src.Queue(queue)
		if !ok {
			continue
		}
		for _, k := range old {
			if k.src == src {
				l.All = append(l.All, k)
				continue next
			}
		}
		at := min(part.To, src.Behind(sstable.Place{Queue: queue, At: from.At, ID: from.ID}))
		l.All = append(l.All, &Cursor{src: src, end: part.To, next: max(part.From, at)})
	}
}

// Heads makes sure that of each sstable the first live entry is read that is not before from
// and may be due before until. It returns ErrLack if some must be read. With timeWillDo, an
// entry with a known time need not be read.
func (l *Cursors) Heads(r *Reader, from memtable.Position, until int64, timeWillDo bool) error {
	var err error
	for _, k := range l.All {
		if k.head(r, from) || k.next == k.end {
			continue
		}
		at, exact := k.src.Floor(k.next)
		if at >= until || timeWillDo && exact && !(memtable.Position{At: at}).Before(from) {
			continue
		}
		r.lacks.cursors = append(r.lacks.cursors, reading{k, k.src, k.next, k.end})
		err = ErrLack
	}
	return err
}

// Head is the first entry that was read and not passed over, since Heads; nil: there is none.
func (k *Cursor) Head() *Item {
	if len(k.loaded) == 0 {
		return nil
	}
	return &k.loaded[0]
}

// Skip passes over the first entries that were read, as long as they are deleted or skip says
// so. It reports whether there were any.
func (k *Cursor) Skip(skip func(engine.ID) bool) (some bool) {
	for len(k.loaded) > 0 && (!k.src.Alive(k.loaded[0].Pos) || skip(k.loaded[0].ID)) {
		k.loaded, some = k.loaded[1:], true
	}
	return some
}

// Floor is a time before which the cursor has no entry but those that skip says, and exact says
// that the first of the others has this time; ok is false if there are none.
func (k *Cursor) Floor(skip func(engine.ID) bool) (at int64, exact, ok bool) {
	for i := range k.loaded {
		if t := &k.loaded[i]; k.src.Alive(t.Pos) && !skip(t.ID) {
			return t.Due, true, true
		}
	}
	if k.next == k.end {
		return 0, false, false
	}
	at, exact = k.src.Floor(k.next)
	return at, exact && k.src.Alive(k.next), true
}

// head passes over entries that were deleted or are before a position. It reports whether the
// next entry has been read.
func (k *Cursor) head(r *Reader, from memtable.Position) bool {
	for {
		for len(k.loaded) > 0 {
			if t := &k.loaded[0]; k.src.Alive(t.Pos) && !t.Position().Before(from) {
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
		l, read := r.loads[k]
		delete(r.loads, k)
		if !read || next < l.from || next >= l.to {
			return false
		}
		k.loaded, k.next, k.room = l.items, l.to, cap(l.items)
	}
}

// UpTo appends to some at most most entries that were read and are before last. It returns the
// position up to which these are all.
func (k *Cursor) UpTo(some []Item, last memtable.Position, most int) ([]Item, memtable.Position) {
	n := 0
	for ; n < len(k.loaded); n++ {
		t := &k.loaded[n]
		if !t.Position().Before(last) {
			return some, last
		}
		if k.src.Alive(t.Pos) {
			some = append(some, *t)
		}
		if n+1 == most {
			return some, t.Position().Next()
		}
	}
	if n > 0 && k.next < k.end {
		last = k.loaded[n-1].Position().Next()
	}
	return some, last
}

// reading says which entries are to be read for a cursor.
type reading struct {
	of        *Cursor
	src       *Source
	from, end uint32
}

// loaded is what was read: the live entries in [from, to).
type loaded struct {
	from, to uint32
	items    []Item
}

// load reads entries for a cursor.
func (r *Reader) load(n *reading) error {
	items, to, damage, err := n.src.Items(n.from, n.end, loadItems)
	if damage != nil {
		r.st.Slog.Error("tarry disk: messages in a damaged block of an sstable cannot be read and are passed over; tarry check --salvage saves the others",
			"dir", r.st.Dir, "error", damage)
	}
	switch {
	case errors.Is(err, sstable.ErrClosed): // the next step has other cursors
		return nil
	case err == nil:
		put(&r.loads, n.of, loaded{n.from, to, items})
	}
	return err
}

// MostItems is the most entries that Source.Items is best asked for.
const MostItems = 1024

// Items reads about so many live entries in [from, end), and passes over damaged blocks. damage
// is the last such error. to is where to go on.
func (s *Source) Items(from, end uint32, many int) (some []Item, to uint32, damage, err error) {
	to = min(end, s.Reach(from, many))
	left := loadBytes
	for from < to {
		some, from, err = s.itemsFrom(some, from, to, &left)
		if left <= 0 {
			to = from
		}
		switch {
		case errors.Is(err, sstable.ErrDamaged):
			damage, err = err, nil
		case IsUnreadable(err): // the entries before the block will do for now
			block := s.Begin(from - 1)
			for len(some) > 0 && some[len(some)-1].Pos >= block {
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

// itemsFrom reads until an error, or until left bytes of values are used up. next is where to
// go on.
func (s *Source) itemsFrom(some []Item, from, to uint32, left *int) (_ []Item, next uint32, err error) {
	scan := s.Scan(from, to).Heads(headBytes)
	for next = to; *left > 0 && err == nil && scan.Next(); {
		e := scan.Entry()
		t := Item{Due: e.At, ID: engine.ID(e.ID), Pos: e.Pos, Src: s}
		if s.Area == memtable.Live {
			t.Priority, err = s.priority(e)
		}
		if err == nil {
			some = append(some, t)
		}
		if *left -= len(e.Value); *left <= 0 {
			next = e.Pos + 1
		}
	}
	if err = errors.Join(err, scan.Err()); IsUnreadable(err) {
		next = s.Reach(scan.At(), 1)
	}
	if cerr := scan.Close(); err == nil {
		err = cerr
	}
	return some, next, err
}

// priority is the priority in an entry. The first bytes may be enough; if not, it reads the
// whole entry.
func (s *Source) priority(e sstable.Entry) (uint32, error) {
	_, _, content, err := record.ParseStored(e.Value)
	var h record.Head
	if err == nil {
		h, err = record.ParseHead(content)
	}
	switch {
	case err == nil:
		return h.Priority, nil
	case !e.Cut:
		return engine.DefaultPriority, nil
	}
	if e, err = s.Get(e.Pos); err != nil {
		return 0, err
	}
	return s.priority(e)
}
