package memtable

// Ahead is memory with a copy of the tail of a long value, made without any lock before its
// entry is added. It is for one entry.
type Ahead struct {
	pool *pool
	mem  []byte // nil: an entry has it
	head int    // bytes before the tail
}

// Ahead copies a tail. If the entry then has more than head bytes of key and value before it,
// the tail is copied again. Ahead may be called at any time.
func (r *Tables) Ahead(head int, tail []byte) *Ahead {
	a := &Ahead{r.pool, r.pool.takeLarge(head + len(tail)), head}
	copy(a.mem[head:], tail)
	return a
}

// take returns the memory, with room for head bytes before the tail. ok is false if there is
// less room, or no memory.
func (a *Ahead) take(head int) (l large, ok bool) {
	if a == nil || a.mem == nil || head > a.head {
		return large{}, false
	}
	l, a.mem = large{a.mem, a.head - head}, nil
	return l, true
}

// Drop gives the memory back, unless an entry has taken it.
func (a *Ahead) Drop() {
	if a.mem != nil {
		a.pool.giveBackLarge(a.mem)
		a.mem = nil
	}
}
