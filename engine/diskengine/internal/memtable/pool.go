package memtable

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// chunkSize is how many bytes are taken at a time: from the system, and by each part of a
// memtable.
const chunkSize = 256 << 10

// pool has the chunks that no memtable needs. Many goroutines may call its methods.
type pool struct {
	onHeap bool
	keep   int // how many chunks

	mu    sync.Mutex
	spare [][]byte
	large [][]byte // larger pieces that wait for trim
	idle  [][]byte // larger pieces that are free to be used again
	kept  int      // bytes of idle
	taken int64    // bytes that memtables have

	loose atomic.Int64 // bytes of large; changed only with mu held
}

// get returns a chunk. It has its old content, unless zero asks for zeros.
func (p *pool) get(zero bool) []byte {
	p.mu.Lock()
	p.taken += chunkSize
	n := len(p.spare)
	if n == 0 {
		p.mu.Unlock()
		return p.system(chunkSize)
	}
	b := p.spare[n-1]
	p.spare[n-1] = nil
	p.spare = p.spare[:n-1]
	p.mu.Unlock()
	if zero {
		clear(b)
	}
	return b
}

// put takes chunks back.
func (p *pool) put(chunks ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= int64(len(chunks)) * chunkSize
	p.spare = append(p.spare, chunks...)
}

// trim gives spare memory that is not to be kept to the system, at most so many pieces. It
// reports whether there are more.
func (p *pool) trim(most int) bool {
	p.mu.Lock()
	large := min(most, len(p.large))
	loose := slices.Clone(p.large[:large])
	p.large = slices.Delete(p.large, 0, large)
	for _, b := range loose {
		p.loose.Add(-int64(len(b)))
	}
	rest := len(p.spare) - min(most-large, max(0, len(p.spare)-p.keep))
	give := slices.Clone(p.spare[rest:])
	p.spare = slices.Delete(p.spare, rest, len(p.spare))
	more := len(p.spare) > p.keep || len(p.large) > 0
	p.mu.Unlock()
	for _, b := range give {
		p.giveBack(b)
	}
	for _, b := range loose {
		p.takeBack(b)
	}
	return more
}

// takeLarge returns memory of n bytes, or some more, for an entry that does not fit into a
// chunk.
func (p *pool) takeLarge(n int) []byte {
	b := p.lend(n)
	p.mu.Lock()
	p.taken += int64(len(b))
	p.mu.Unlock()
	return b
}

// freeLarge takes such memory back. Only trim frees it: that takes the longer the more memory
// it is, and the caller holds a lock.
func (p *pool) freeLarge(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= int64(len(b))
	p.loose.Add(int64(len(b)))
	p.large = append(p.large, b)
}

// giveBackLarge takes back memory of takeLarge that no memtable has used. The caller holds no
// lock.
func (p *pool) giveBackLarge(b []byte) {
	p.mu.Lock()
	p.taken -= int64(len(b))
	p.mu.Unlock()
	p.takeBack(b)
}

const pageSize = 4 << 10

// lend returns memory of at least n bytes, which does not count as taken. There are few sizes,
// each at most an eighth larger than n, or up to a page, so that memory can be used again.
func (p *pool) lend(n int) []byte {
	step := max(pageSize, 1<<(bits.Len(uint(n-1)))>>4)
	size := (n + step - 1) / step * step
	p.mu.Lock()
	for i, b := range slices.Backward(p.idle) {
		if len(b) == size {
			p.idle, p.kept = slices.Delete(p.idle, i, i+1), p.kept-size
			p.mu.Unlock()
			return b
		}
	}
	p.mu.Unlock()
	return p.system(size)
}

// takeBack takes back memory that was lent. It keeps as much as of chunks, and gives the rest
// to the system: mapping and unmapping memory, and touching each page for the first time,
// takes several times as long as filling it. It is best called without a lock.
func (p *pool) takeBack(b []byte) {
	p.mu.Lock()
	p.idle, p.kept = append(p.idle, b), p.kept+len(b)
	n := 0 // the oldest
	for ; p.kept > p.keep*chunkSize; n++ {
		p.kept -= len(p.idle[n])
	}
	give := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.mu.Unlock()
	for _, b := range give {
		p.giveBack(b)
	}
}

func (p *pool) memory() (taken, spare int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, int64(len(p.spare))*chunkSize + int64(p.kept) + p.loose.Load()
}

// close gives all spare memory back.
func (p *pool) close() {
	p.keep = 0
	p.takeBack(nil)
	for p.trim(math.MaxInt) {
	}
}

// system returns n zero bytes, from outside of Go's heap if possible: so the collector neither
// counts them nor keeps as much again in reserve.
func (p *pool) system(n int) []byte {
	if !p.onHeap {
		if b := mapMemory(n); b != nil {
			return b
		}
	}
	return make([]byte, n)
}

func (p *pool) giveBack(b []byte) {
	if !p.onHeap {
		unmapMemory(b)
	}
}
