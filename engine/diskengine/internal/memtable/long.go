package memtable

// Ahead is memory to which the tail of a long value was copied, outside of all locks, before the entry is added that
// it is of. It is of one entry at most.
type Ahead struct {
	pool *pool
	mem  []byte // nil: an entry has it
	head int    // bytes before the tail
}

// Ahead copies a tail, before which an entry has at most head bytes of key and value, or it is copied once more. It
// may be called at any time.
func (r *Tables) Ahead(head int, tail []byte) *Ahead {
	a := &Ahead{r.pool, r.pool.takeLarge(head + len(tail)), head}
	copy(a.mem[head:], tail)
	return a
}

// take returns the memory, with room for so many bytes before the tail, if it has that.
func (a *Ahead) take(head int) (l large, ok bool) {
	if a == nil || a.mem == nil || head > a.head {
		return large{}, false
	}
	l, a.mem = large{a.mem, a.head - head}, nil
	return l, true
}

// Drop gives the memory back, unless an entry has it.
func (a *Ahead) Drop() {
	if a.mem != nil {
		a.pool.giveBackLarge(a.mem)
		a.mem = nil
	}
}
