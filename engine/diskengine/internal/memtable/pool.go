package memtable

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// chunkSize is how much memory is taken at a time, from the system and by each part of a
// memtable.
const chunkSize = 256 << 10

// pool has the chunks that no memtable needs. Its methods may be called from many goroutines.
type pool struct {
	onHeap bool
	keep   int    // chunks
	low    func() // is called when few are spare; nil: nothing is

	mu    sync.Mutex
	spare [][]byte
	large [][]byte // larger ones, to be given back
	idle  [][]byte // larger ones that are free, to be used again
	kept  int      // bytes of those
	taken int64    // bytes that are none of these

	loose atomic.Int64 // bytes of large; with mu held where it changes
}

// stock is how many chunks are made ready: the system gives memory page by page, as each is first
// touched, under the caller's lock.
const stock = 16

// ready is how many chunks are to be spare.
func (p *pool) ready() int {
	if p.low == nil {
		return 0
	}
	return min(stock, p.keep/8)
}

// fill makes chunks ready until there are enough.
func (p *pool) fill() {
	for {
		p.mu.Lock()
		enough := len(p.spare) >= p.ready()
		p.mu.Unlock()
		if enough {
			return
		}
		b := p.system(chunkSize)
		if !p.onHeap {
			populate(b)
		}
		p.mu.Lock()
		p.spare = append(p.spare, b)
		p.mu.Unlock()
	}
}

// get returns a chunk, which holds what it held before unless it is to be clear.
func (p *pool) get(zero bool) []byte {
	p.mu.Lock()
	p.taken += chunkSize
	n := len(p.spare)
	if n < p.ready() {
		p.low()
	}
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

// trim gives back to the system some at most of what is spare beyond what to keep, and reports
// whether there is more.
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

// takeLarge returns memory for n bytes, or some more, that do not fit into a chunk.
func (p *pool) takeLarge(n int) []byte {
	b := p.lend(n)
	p.mu.Lock()
	p.taken += int64(len(b))
	p.mu.Unlock()
	return b
}

// freeLarge takes such memory back. It goes with the next trim: that takes the longer the more it
// is, under the caller's lock.
func (p *pool) freeLarge(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= int64(len(b))
	p.loose.Add(int64(len(b)))
	p.large = append(p.large, b)
}

// giveBackLarge takes such memory back that no memtable has had.
func (p *pool) giveBackLarge(b []byte) {
	p.mu.Lock()
	p.taken -= int64(len(b))
	p.mu.Unlock()
	p.takeBack(b)
}

const pageSize = 4 << 10

// lend returns memory that is no memtable's, and counts as none's. Its size is one of few, at most an eighth larger.
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
	b := p.system(size)
	if !p.onHeap {
		populate(b)
	}
	return b
}

// takeBack takes back what was lent, and gives to the system what is beyond what is kept, which is as much
// as of chunks: to map and unmap memory, and to touch each page for the first time, takes several times as long as to
// fill it. It is best called outside of locks.
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

// close gives back all that is spare.
func (p *pool) close() {
	p.keep = 0
	p.takeBack(nil)
	for p.trim(math.MaxInt) {
	}
}

// system returns n bytes, which are zeros, from outside of Go's heap if that can be: so the
// collector neither counts them nor keeps as much again in reserve.
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
