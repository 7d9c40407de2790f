package diskengine

import (
	"errors"
	"math"
	"syscall"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// readyQueue has the messages of a queue that are about to be leased. front is a position in
// the order of due times. All pending messages before it are in heap, in the order in which
// they are leased. The others are only in memtables and sstables. front follows the clock as
// far as leases ask, and stops when heap is full.
//
// A message that is removed or moved leaves its item in the heap. The item is passed over when
// it comes to the top.
//
// If memory is short the heap is forgotten, and filled again from the start. known and least
// avoid a walk through all messages for a few leases: no pending message before known has a
// priority before least. Once heap has as many of priority least as are asked for, they are
// leased and front stays.
type readyQueue struct {
	front memtable.Position
	heap  readyHeap

	known      memtable.Position
	least      uint32
	knownCount int64 // pending messages before known
	bestCount  int   // items in heap of priority least or before it
}

// readyLen is how many messages of a queue are in exact order by default: a heap has room for
// them.
const readyLen = 65_536

// walkItems is how many messages are moved to the heap at a time, and walkMost how many times
// before others are let in.
const (
	walkItems = 256
	walkMost  = 8
)

// rewind forgets the ready messages, as the clock stepped back or too many became ready out of
// order. They are found again where they are stored.
func (q *queue) rewind() {
	q.forgetReady()
	q.known, q.least, q.knownCount = memtable.First, 0, 0
}

// forgetReady frees the ready heap, and remembers in known and least what it knew.
func (q *queue) forgetReady() {
	if !q.front.Before(q.known) {
		q.known, q.least, q.knownCount = q.front, math.MaxUint32, q.ready
		if len(q.heap) > 0 {
			q.least = q.heap[0].Priority
		}
	}
	q.front, q.heap, q.ready, q.bestCount = memtable.First, nil, 0, 0
	q.cursors[memtable.Live].Forget()
}

// room is up to how many items a heap is filled: more than needed, so that it is not filled
// again at once.
func (e *Engine) room() int { return e.cfg.tune.ready + e.cfg.tune.ready/4 }

// take puts an item into the heap.
func (q *queue) take(t store.Item) {
	if t.Priority <= q.least {
		q.bestCount++
	}
	q.heap.push(t)
}

// drop removes the first item of the heap.
func (q *queue) drop() {
	if q.heap[0].Priority <= q.least {
		q.bestCount--
	}
	q.heap.pop()
}

// knows reports whether known reaches far enough: an item of priority least may be leased
// though front has not passed all due messages.
func (c *call) knows(q *queue) bool {
	return q.front.Before(q.known) && (q.known.At > c.ms || q.knownCount >= int64(c.e.cfg.tune.ready))
}

// forgetCursors forgets what a queue has read of sstables if it was not used for long: it would keep
// sstables in memory that were merged away.
func (e *Engine) forgetCursors(q *queue) {
	for a := range q.cursors {
		if !q.cursors[a].Idle(e.store) {
			continue
		}
		q.cursors[a].Forget()
		if memtable.Area(a) == memtable.Live {
			q.forgetReady()
		}
		e.weigh(q)
	}
}

// weigh notes how much memory the ready heap and the cursors of a queue take. If all queues
// together take more than their share, other queues forget theirs, and fill them again when
// they are used.
func (e *Engine) weigh(q *queue) {
	was := q.weight
	q.weight = int64(cap(q.heap)) * store.ItemBytes
	for a := range q.cursors {
		q.weight += q.cursors[a].Bytes()
	}
	if q.gone {
		q.weight = 0
	}
	e.readyMemory += q.weight - was
	most, looked := e.cfg.tune.readyMemory, 0
	if e.readyMemory <= most {
		return
	}
	for _, o := range e.queues { // in no order
		if o != q && o.weight > 0 {
			o.forgetReady()
			for a := range o.cursors {
				o.cursors[a].Forget()
			}
			e.readyMemory -= o.weight
			o.weight = 0
		}
		if looked++; e.readyMemory <= most/4*3 || looked == mostShed {
			return
		}
	}
}

const mostShed = 4096 // queues that are looked at in one go

// waits notes that a message is pending now, or pending in another place than before.
func (c *call) waits(q *queue, t store.Item) {
	c.least = min(c.least, t.Due)
	at := t.Position()
	if at.Before(q.known) {
		q.knownCount++
		if t.Priority < q.least {
			q.least, q.bestCount = t.Priority, 0
		}
	}
	if at.Before(q.front) {
		q.ready++
		q.take(t)
		if len(q.heap) > 2*c.e.cfg.tune.ready {
			q.rewind()
		}
	}
	q.arrives(max(t.Due, q.pause))
}

// leaves notes that a pending message no longer is.
func (q *queue) leaves(due int64, id engine.ID) {
	at := memtable.Position{At: due, ID: uint64(id)}
	if at.Before(q.front) {
		q.ready--
	}
	if at.Before(q.known) {
		q.knownCount--
	}
}

// advance moves due messages to the heap until all are in it, it is full, or the next most of
// them are known.
func (c *call) advance(q *queue, most int) error {
	q.cursors[memtable.Live].Refresh(c.e.store, q.num, q.front)
	end := memtable.Position{At: c.ms + 1}
	for n := 0; q.front.Before(end) && len(q.heap) < c.e.room() && !(q.bestCount >= most && c.knows(q)); n++ {
		if n == walkMost {
			return errYield
		}
		if err := c.walk(q, end); err != nil {
			return err
		}
	}
	return nil
}

// walk moves some due messages to the heap.
func (c *call) walk(q *queue, end memtable.Position) error {
	cursors := &q.cursors[memtable.Live]
	if err := cursors.Heads(&c.reader, q.front, end.At, false); err != nil {
		return err
	}
	most := min(walkItems, c.e.room()-len(q.heap))
	some := c.items[:0]
	last := end // all before it are in some
	c.e.store.Memtables.Ascend(q.num, memtable.Live, q.front, func(e memtable.Entry) bool {
		at := e.Position()
		if !at.Before(end) {
			return false
		}
		some = append(some, store.Item{Due: e.At, ID: engine.ID(e.ID), Priority: priorityOf(e.Value), Epoch: c.e.store.Epoch})
		if len(some) == most {
			last = at.Next()
		}
		return len(some) < most
	})
	for _, k := range cursors.All {
		some, last = k.UpTo(some, last, most)
	}
	for _, t := range some {
		if !t.Position().Before(last) || q.held(t.ID) {
			continue
		}
		q.take(t)
		q.ready++
	}
	c.items = some[:0]
	q.front = last
	return nil
}

// priorityOf is the priority in a value, which was checked when it was written.
func priorityOf(value []byte) uint32 {
	_, content, err := record.ParseValue(value)
	if err != nil {
		return engine.DefaultPriority
	}
	h, err := record.ParseHead(content)
	if err != nil {
		return engine.DefaultPriority
	}
	return h.Priority
}

// next is when the first pending message from front on is due, or earlier; never: there is
// none.
func (c *call) next(q *queue) (int64, error) {
	cursors := &q.cursors[memtable.Live]
	cursors.Refresh(c.e.store, q.num, q.front)
	at, passed := int64(never), 0
	c.e.store.Memtables.Ascend(q.num, memtable.Live, q.front, func(e memtable.Entry) bool {
		if q.held(engine.ID(e.ID)) {
			if passed++; passed < walkMost*walkItems { // then this one's time will do: none before it waits
				return true
			}
		}
		at = e.At
		return false
	})
	if err := cursors.Heads(&c.reader, q.front, at, true); err != nil {
		return 0, err
	}
	for _, k := range cursors.All {
		if first, _, ok := k.Floor(q.held); ok {
			at = min(at, first)
		}
	}
	return at, nil
}

// top returns the message that is leased first, and removes its item, even if the message is
// corrupt. The item stays if the message must be read first, or if the disk fails to read it.
// ok is false if there is none. errYield means that many stale items were passed over. read is
// how it is read in an sstable.
func (c *call) top(q *queue, read reads) (t store.Item, m message, ok bool, err error) {
	for n := 0; len(q.heap) > 0; n++ {
		if n == 4*store.StepItems {
			return t, m, true, errYield
		}
		t = q.heap[0]
		m, ok, err = c.readyMessage(q, &t, read)
		if err == store.ErrLack || errors.Is(err, syscall.EIO) { // the caller asks again
			return t, m, true, err
		}
		q.drop()
		if ok || err != nil {
			return t, m, ok, err
		}
	}
	return store.Item{}, message{}, false, nil
}

// readyMessage finds the message of an item, if it is still ready.
func (c *call) readyMessage(q *queue, t *store.Item, read reads) (m message, ok bool, err error) {
	if q.held(t.ID) {
		return m, false, nil
	}
	if e, found := c.e.store.Memtables.ByID(uint64(t.ID)); found {
		if t.Src != nil || e.Area != memtable.Live || e.At != t.Due || e.Queue != q.num {
			return m, false, nil
		}
		m, err = c.fromMemtable(q, e)
		return m, err == nil && m.Priority == t.Priority, err
	}
	at := t.Spot()
	if t.Src == nil {
		if t.Epoch == c.e.store.Epoch {
			return m, false, nil // it would still be in a memtable
		}
		if at, err = c.reader.ByID(t.ID); err != nil {
			return m, false, err
		}
	}
	if at = c.reader.Now(at); at.Src == nil || at.Src.Area != memtable.Live {
		return m, false, nil
	}
	t.Src, t.Pos = at.Src, at.Pos
	v, err := read(at)
	if err != nil {
		return m, false, err
	}
	if v.At != t.Due {
		return m, false, nil
	}
	m, err = c.stored(q, at, v)
	return m, err == nil && m.Priority == t.Priority, err
}
