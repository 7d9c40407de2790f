package memtable

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
)

func small() *Tables { return New(&Config{OnHeap: true, Keep: 4 << 20}) }

// message is one of a queue, of 200 bytes of value.
func message(id uint64) Entry {
	return Entry{ID: id, Queue: uint32(id%3) + 1, At: int64(id * 7919 % 100003), Key: fmt.Append(nil, "order-", id), Value: make([]byte, 220)}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	last := 0
	for size := 1; size <= maxSlot; size++ {
		c := classOf(size)
		if slotSize(c) < size || c > 0 && slotSize(c-1) >= size || c < last || slotSize(c)%granule != 0 {
			t.Fatalf("%d bytes: class %d of %d", size, c, slotSize(c))
		}
		if size > 1<<8 && size <= highSlot && slotSize(c)*8 > size*9+8*granule {
			t.Fatalf("%d bytes take %d", size, slotSize(c))
		}
		last = c
	}
	if last != classes-1 {
		t.Errorf("the last class is %d of %d", last, classes)
	}
}

// TestMemoryIsUsedAgain: entries that come and go take no more than those that are there at a
// time, and all is given back.
func TestMemoryIsUsedAgain(t *testing.T) {
	t.Parallel()
	r := small()
	empty, _ := r.Memory()
	const n = 5000
	id, most := uint64(0), int64(0)
	for round := range 20 {
		for range n {
			id++
			e := message(id)
			e.Value = e.Value[:100+id%120]
			r.Add(e)
		}
		if taken, _ := r.Memory(); round == 0 {
			most = taken + 4*chunkSize
		} else if taken > most {
			t.Fatalf("round %d takes %d bytes, the first %d", round, taken, most)
		}
		for i := id - n + 1; i <= id; i++ {
			r.Remove(i)
		}
	}
	if taken, _ := r.Memory(); taken > empty+4*chunkSize {
		t.Errorf("empty it takes %d bytes, %d at first", taken, empty)
	}
	r.Add(Entry{ID: id + 1, Queue: 1, Value: make([]byte, 10<<20)})
	r.Seal()
	r.Seal()
	r.Close()
	if taken, spare := r.pool.memory(); taken != 0 || spare != 0 {
		t.Errorf("%d bytes are taken and %d spare when it is closed", taken, spare)
	}
}

// TestOverhead: what an entry takes besides its key and value is bounded.
func TestOverhead(t *testing.T) {
	t.Parallel()
	r := small()
	defer r.Close()
	const n = 100_000
	bytes := int64(0)
	for id := uint64(1); id <= n; id++ {
		e := message(id)
		bytes += int64(len(e.Key) + len(e.Value))
		r.Add(e)
	}
	for id := uint64(1); id <= n+1; id += 3 {
		e := message(id)
		if _, found := r.ByID(id); found != (id <= n) {
			t.Fatalf("id %d: %v", id, found)
		}
		if got, found := r.ByKey(e.Queue, Live, e.Key); found != (id <= n) || found && got.ID != id {
			t.Fatalf("key of %d: %v, %d", id, found, got.ID)
		}
	}
	taken, _ := r.Memory()
	if over := float64(taken-bytes) / n; over > 130 {
		t.Errorf("%.0f bytes an entry besides its own", over)
	}
}

// TestTrim: what is spare beyond what is to be kept is given back, some at a time.
func TestTrim(t *testing.T) {
	t.Parallel()
	r := small()
	defer r.Close()
	for id := uint64(1); id <= 50_000; id++ {
		r.Add(message(id))
	}
	r.Seal().Drop()
	_, before := r.Memory()
	for more := true; more; {
		more = r.Trim()
		_, now := r.Memory()
		if before-now > trimChunks*chunkSize {
			t.Fatalf("%d bytes were given back at once", before-now)
		}
		before = now
	}
	if before != 4<<20 {
		t.Errorf("%d bytes are spare", before)
	}
}

const mostIdle = 16 << 20 // bytes that are kept here

// TestLargeAreGivenBackLater: what is larger than a chunk is spare when it is freed, and nobody gets it before the next
// Trim, since it may still be read. That keeps some, which is used again, and gives back the rest.
func TestLargeAreGivenBackLater(t *testing.T) {
	t.Parallel()
	r := New(&Config{Keep: mostIdle})
	defer r.Close()
	const n, size = 100, chunkSize
	add := func(from, to uint64) {
		for id := from; id <= to; id++ {
			r.Add(Entry{ID: id, Queue: 1, Value: make([]byte, size)})
		}
	}
	add(1, n)
	full, _ := r.Memory()
	for id := uint64(1); id <= n/2; id++ {
		r.Remove(id)
	}
	r.Seal().Drop()
	taken, spare := r.Memory()
	if full-taken < n*size || spare < n*size || r.Loose() < n*size {
		t.Errorf("of %d bytes %d are taken and %d spare, %d of them loose", full, taken, spare, r.Loose())
	}
	if add(n+1, n+1); r.Loose() < n*size {
		t.Error("what may still be read is used again")
	}
	for r.Trim() {
	}
	_, now := r.Memory()
	if kept := now - (spare - n*size); kept > mostIdle+size || kept < mostIdle/2 || r.Loose() != 0 {
		t.Errorf("%d bytes are spare, and after Trim %d, %d of them loose", spare, now, r.Loose())
	}
	add(n+2, n+11)
	if _, after := r.Memory(); now-after < 10*size {
		t.Errorf("%d bytes are spare, and %d once as large values have come", now, after)
	}
}

// TestBorrowedIsUsedAgain borrows memory again and again: it is the same where it has about the size, and where other
// sizes are asked for those go that nobody asked for.
func TestBorrowedIsUsedAgain(t *testing.T) {
	t.Parallel()
	r := New(&Config{Keep: mostIdle})
	defer r.Close()
	for size := 60_000; size < 4*mostIdle; size = size*5/4 + 1 {
		first, giveBack := r.Borrow(size)
		if len(first) < size || len(first) > size+max(pageSize, size/8) {
			t.Fatalf("%d bytes are borrowed, %d come", size, len(first))
		}
		giveBack()
		_, spare := r.Memory()
		if spare > mostIdle {
			t.Fatalf("%d bytes are kept", spare)
		}
		_, giveBack = r.Borrow(size)
		if _, left := r.Memory(); len(first) <= mostIdle && spare-left != int64(len(first)) {
			t.Errorf("%d bytes are borrowed anew", size)
		}
		giveBack()
	}
}

// TestReadersSideBySide: what looks up ids, keys and counts changes nothing, for the race detector
// to see.
func TestReadersSideBySide(t *testing.T) {
	t.Parallel()
	r := small()
	defer r.Close()
	var mu sync.RWMutex
	var wg sync.WaitGroup
	for id := uint64(1); id <= 2000; id++ {
		r.Add(message(id))
	}
	s := r.Seal()
	looks := func() {
		for id := uint64(1); id < 4000; id += 7 {
			mu.RLock()
			e, found := r.ByID(id)
			if found {
				if k, ok := r.ByKey(e.Queue, e.Area, e.Key); !ok || !bytes.Equal(k.Value, e.Value) {
					t.Errorf("key of %d leads to %d", id, k.ID)
				}
			}
			r.Count(1, Live)
			r.Places(func(uint32, Area, int64) {})
			r.Memory()
			mu.RUnlock()
			mu.Lock()
			n := 0
			r.Ascend(1, Live, First, func(Entry) bool { n++; return n < 5 })
			r.Descend(1, Live, endOfArea, func(Entry) bool { n++; return n < 10 })
			r.CountRange(1, Live, First, endOfArea)
			mu.Unlock()
		}
	}
	wg.Go(looks)
	wg.Go(looks)
	wg.Go(func() {
		for id := uint64(2001); id < 4000; id++ {
			mu.Lock()
			r.Add(message(id))
			r.Remove(id - 1500)
			if e, ok := r.ByID(id); ok && id%4 == 0 {
				e.Area, e.At = Dead, 5
				r.Put(e)
			}
			mu.Unlock()
		}
	})
	wg.Go(func() {
		for n := 1; n > 0; {
			mu.Lock()
			n = s.Pass(Live, 10, func(Entry) {})
			mu.Unlock()
		}
	})
	wg.Go(func() {
		for range 100 {
			r.Trim()
		}
	})
	wg.Wait()
	s.Left(Live)
	s.Drop()
}

// TestManyDeadOfOneKey: they are found and dropped one by one, the first and the last, in no time.
func TestManyDeadOfOneKey(t *testing.T) {
	t.Parallel()
	r := small()
	defer r.Close()
	const n = 50_000
	for id := uint64(1); id <= n; id++ {
		r.Add(Entry{ID: id, Queue: 1, Area: Dead, At: int64(id / 10), Key: []byte("k")})
	}
	last := uint64(n)
	for id := uint64(1); id < last; id++ {
		if e, ok := r.ByKey(1, Dead, []byte("k")); !ok || e.ID != last {
			t.Fatalf("found %v, want %d", e, last)
		}
		if _, ok := r.ByKey(1, Live, []byte("k")); ok {
			t.Fatal("a dead one holds a key")
		}
		r.Remove(id)
		r.Remove(last)
		last--
	}
}
