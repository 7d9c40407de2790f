package recent

import "sync"

// chunkSize is how much memory is taken at a time, from the system and by each part of a
// window.
const chunkSize = 256 << 10

// pool has the chunks that no window needs. Its methods may be called from many goroutines.
type pool struct {
	onHeap bool
	keep   int // chunks

	mu    sync.Mutex
	spare [][]byte
	taken int64 // bytes that are not spare
}

// get returns a chunk, which holds what it held before unless it is to be clear.
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

// trim gives back to the system at most some of the spare chunks beyond those to keep, and
// reports whether there are more.
func (p *pool) trim(most int) bool {
	p.mu.Lock()
	n := min(most, max(0, len(p.spare)-p.keep))
	rest := len(p.spare) - n
	give := append([][]byte(nil), p.spare[rest:]...)
	clear(p.spare[rest:])
	p.spare = p.spare[:rest]
	p.mu.Unlock()
	for _, b := range give {
		p.giveBack(b)
	}
	return rest > p.keep
}

// large returns memory for n bytes that do not fit into a chunk.
func (p *pool) large(n int) []byte {
	size := (n + pageSize - 1) / pageSize * pageSize
	p.mu.Lock()
	p.taken += int64(size)
	p.mu.Unlock()
	return p.system(size)[:n]
}

func (p *pool) freeLarge(b []byte) {
	p.mu.Lock()
	p.taken -= int64(cap(b))
	p.mu.Unlock()
	p.giveBack(b[:cap(b)])
}

const pageSize = 4 << 10

func (p *pool) memory() (taken, spare int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, int64(len(p.spare)) * chunkSize
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
