package memtable

import (
	"math"
	"unsafe"
)

// Lease is the lease of a message. The message stays where it is stored. A Lease has no pointers.
type Lease struct {
	// The lease is found by these; only methods of Leases change them.
	ID       uint64
	Deadline int64
	Due      int64 // of the message
	Queue    uint32
	ref      ref
	lapsed   bool

	Remote bool // another process has it
	Given  bool // a client has a token with this nonce
	Known  bool // Due and the fields after Attempt are known
	Nonce  [16]byte
	worker uint32 // its number in Leases.workers

	// Where the message was in an sstable when last looked up. Table 0: in a memtable, or not
	// known.
	Table uint64
	Pos   uint32
	Epoch uint32

	Attempt uint32

	// What is needed of the message at the end of the lease:
	Priority    uint32
	MaxAttempts uint32
	Expires     int64
	TTR         int64 // nanoseconds
	Remember    int64 // nanoseconds; 0 too if the message has no key
	Isolate     bool
}

// HasLapsed reports whether the lease has lapsed and the message waits.
func (l *Lease) HasLapsed() bool { return l.lapsed }

// Leases is a table of leases, in memory outside of Go's heap. They are found by id and, for
// each queue, in the order of their deadlines. They are counted by the due times of their
// messages. Nothing takes longer than a look-up in a tree. Lapsed leases are in an order of
// their own and are not counted.
//
// The caller has a lock for changes, as for Tables. A lease that is found may be read until it
// is removed. Its fields may be changed, except those by which it is found.
type Leases struct {
	pool   *pool
	most   int64
	ids    index
	ends   order // by queue, deadline, id
	dues   order // by queue, due, id
	lapsed order // by queue, deadline, id
	memory [][]byte
	parts  []*[chunkLeases]Lease
	free   ref    // the first free slot; its ref is the next one; 0: none
	begun  uint32 // slots that were ever used; the first is not used, so that 0 means none

	workers workers
}

const (
	// LeaseBytes is how much memory a lease itself takes. Its index and orders take about half
	// as much again.
	LeaseBytes = int(unsafe.Sizeof(Lease{}))

	chunkLeases = chunkSize / LeaseBytes
	keptChunks  = 8
)

// NewLeases returns an empty table for at most so many leases, which the caller ensures with
// Room. It ignores Config.Keep.
func NewLeases(cfg *Config, most int64) *Leases {
	x := &Leases{pool: &pool{onHeap: cfg != nil && cfg.OnHeap, keep: keptChunks}, most: most}
	x.clear()
	return x
}

func (x *Leases) clear() {
	x.ids, x.ends, x.dues, x.lapsed = newIndex(x.pool), newOrder(x.pool), newOrder(x.pool), newOrder(x.pool)
	x.memory, x.parts, x.free, x.begun = nil, nil, 0, 1
	x.workers = workers{}
}

// Shrink frees the memory that the table has grown by, if it is empty.
func (x *Leases) Shrink() {
	if x.ids.n > 0 || x.begun <= uint32(chunkLeases) {
		return
	}
	x.close()
	x.clear()
}

func (x *Leases) close() {
	x.ids.close()
	x.ends.close()
	x.dues.close()
	x.lapsed.close()
	x.pool.put(x.memory...)
}

// Close gives all memory back to the system. Nothing else is called afterwards.
func (x *Leases) Close() {
	x.close()
	x.pool.keep = 0
	for x.Trim() {
	}
}

// Trim is like Tables.Trim.
func (x *Leases) Trim() bool { return x.pool.trim(trimChunks) }

// Memory is how many bytes the table takes, and how many are spare.
func (x *Leases) Memory() (taken, spare int64) { return x.pool.memory() }

// Len is how many leases there are, with lapsed ones.
func (x *Leases) Len() int { return x.ids.n }

// Room is how many more leases a queue with held leases may take. A queue never has more
// leases than it leaves free, so that no queue takes them all.
func (x *Leases) Room(held int64) int {
	return int(min(math.MaxInt32, max(0, (x.most-int64(x.Len())-held+1)/2)))
}

func (x *Leases) slot(r ref) *Lease { return &x.parts[int(r)/chunkLeases][int(r)%chunkLeases] }

// ByID finds a lease; nil: there is none.
func (x *Leases) ByID(id uint64) *Lease {
	r := x.ids.find(hashID(id), func(r ref) bool { return x.slot(r).ID == id })
	if r == 0 {
		return nil
	}
	return x.slot(r)
}

// Add adds the lease of a message that has none, and returns it as it is in the table.
func (x *Leases) Add(l *Lease) *Lease {
	r := x.free
	if r != 0 {
		x.free = x.slot(r).ref
	} else {
		if int(x.begun) >= len(x.parts)*chunkLeases {
			b := x.pool.get(false)
			x.memory = append(x.memory, b)
			x.parts = append(x.parts, (*[chunkLeases]Lease)(unsafe.Pointer(unsafe.SliceData(b))))
		}
		r = ref(x.begun)
		x.begun++
	}
	s := x.slot(r)
	*s = *l
	s.ref, s.lapsed, s.worker = r, false, 0
	x.ids.insert(hashID(s.ID), r)
	x.ends.insert(s.end())
	x.dues.insert(s.due())
	return s
}

func (l *Lease) end() item { return item{hi: l.Queue, ref: uint32(l.ref), at: l.Deadline, id: l.ID} }
func (l *Lease) due() item { return item{hi: l.Queue, ref: uint32(l.ref), at: l.Due, id: l.ID} }

// Remove removes a lease. l must not be used afterwards.
func (x *Leases) Remove(l *Lease) {
	x.leave(l)
	x.ids.remove(hashID(l.ID), l.ref)
	r := l.ref
	*l = Lease{ref: x.free}
	x.free = r
}

// SetWorker sets the name of the worker that has a lease.
func (x *Leases) SetWorker(l *Lease, name string) {
	if len(x.workers.names) > 2*x.Len()+spareWorkers {
		x.forgetWorkers()
	}
	l.worker = x.workers.take(name)
}

// Worker returns the name of the worker that has a lease.
func (x *Leases) Worker(l *Lease) string { return x.workers.name(l.worker) }

// leave removes a lease from the orders.
func (x *Leases) leave(l *Lease) {
	if l.lapsed {
		x.lapsed.remove(l.end())
		return
	}
	x.ends.remove(l.end())
	x.dues.remove(l.due())
}

// Lapse notes that a lease has lapsed, with this deadline.
func (x *Leases) Lapse(l *Lease, deadline int64) {
	x.leave(l)
	l.lapsed, l.Deadline = true, deadline
	x.lapsed.insert(l.end())
}

// Extend gives a lease, which may have lapsed, another deadline.
func (x *Leases) Extend(l *Lease, deadline int64) {
	was := l.lapsed
	if was {
		x.lapsed.remove(l.end())
	} else {
		x.ends.remove(l.end())
	}
	l.lapsed, l.Deadline = false, deadline
	x.ends.insert(l.end())
	if was {
		x.dues.insert(l.due())
	}
}

// SetDue sets when the message of a lease is due.
func (x *Leases) SetDue(l *Lease, due int64) {
	if l.Due == due {
		return
	}
	if !l.lapsed {
		x.dues.remove(l.due())
	}
	if l.Due = due; !l.lapsed {
		x.dues.insert(l.due())
	}
}

// First is the running lease of a queue that ends first; nil: it has none.
func (x *Leases) First(queue uint32) (first *Lease) {
	x.Ascend(queue, First, func(l *Lease) bool { first = l; return false })
	return first
}

// EachLapsed gives fn the lapsed leases of all queues until fn returns false. fn must not change
// the table.
func (x *Leases) EachLapsed(fn func(*Lease) bool) {
	c := x.lapsed.seek(item{at: First.At})
	for it := c.item(); it != nil && fn(x.slot(ref(it.ref))); it = c.item() {
		c.next()
	}
}

// Ascend gives fn the running leases of a queue by their deadlines, from a position on, until
// fn returns false. fn must not change the table.
func (x *Leases) Ascend(queue uint32, from Position, fn func(*Lease) bool) {
	x.ascend(&x.ends, queue, from, fn)
}

// AscendLapsed is Ascend for lapsed leases.
func (x *Leases) AscendLapsed(queue uint32, from Position, fn func(*Lease) bool) {
	x.ascend(&x.lapsed, queue, from, fn)
}

func (x *Leases) ascend(o *order, queue uint32, from Position, fn func(*Lease) bool) {
	c := o.seek(item{hi: queue, at: from.At, id: from.ID})
	for it := c.item(); it != nil && it.hi == queue && fn(x.slot(ref(it.ref))); it = c.item() {
		c.next()
	}
}

// Descend is Ascend backwards, for leases before a position.
func (x *Leases) Descend(queue uint32, before Position, fn func(*Lease) bool) {
	c := x.ends.before(item{hi: queue, at: before.At, id: before.ID})
	for it := c.item(); it != nil && it.hi == queue && fn(x.slot(ref(it.ref))); it = c.item() {
		c.prev()
	}
}

// DueBefore counts the running leases of a queue for messages due before a time.
func (x *Leases) DueBefore(queue uint32, at int64) int64 {
	first, end := item{hi: queue, at: First.At}, item{hi: queue, at: at}
	return x.dues.rank(&end) - x.dues.rank(&first)
}
