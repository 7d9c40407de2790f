package wal

// Prepared is the middle of an entry, a long one, that is copied before the entry is appended, outside of all locks.
type Prepared struct {
	b        []byte // with room before and after the middle
	from, to int    // of it
	give     func()
}

// preparedTail is how many bytes after the middle are copied to where it is: more have everything copied.
const preparedTail = 4 << 10

// Prepare copies the middle of an entry, which will have at most head bytes before it, or everything is copied once
// more. It is copied to what room returns, and give is called once the entry is written, or by Drop: by any
// goroutine. A nil room is Go's heap.
func Prepare(head int, middle []byte, room func(bytes int) (b []byte, give func())) *Prepared {
	if room == nil {
		room = func(bytes int) ([]byte, func()) { return make([]byte, bytes), nil }
	}
	from := frameSize + maxEntryHead + head
	b, give := room(from + len(middle) + preparedTail + align)
	return &Prepared{b, from, from + copy(b[from:], middle), give}
}

// Drop forgets what is not appended.
func (p *Prepared) Drop() {
	if p.give != nil {
		p.give()
	}
}

// AppendPrepared is Append of what was prepared, between a head and a tail that are copied. The bytes are the log's
// afterwards.
func (l *Log) AppendPrepared(kind byte, head []byte, p *Prepared, tail []byte) (Pos, error) {
	n := len(head) + p.to - p.from + len(tail)
	if from, to := p.from-len(head), p.to+len(tail); from < frameSize+maxEntryHead || to+align > len(p.b) {
		defer p.Drop()
		return l.Append(kind, head, p.b[p.from:p.to], tail)
	}
	at := p.from - copy(p.b[p.from-len(head):], head)
	end := p.to + copy(p.b[p.to:], tail)
	var room [maxEntryHead]byte
	at -= copy(p.b[at-len(appendEntryHead(room[:0], kind, n)):], appendEntryHead(room[:0], kind, n))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.takes(n); err != nil {
		p.Drop()
		return 0, err
	}
	if l.cur != nil {
		l.full, l.cur = append(l.full, l.cur), nil
	}
	l.full = append(l.full, &buffer{b: p.b[at-frameSize : end : len(p.b)], back: p.give})
	l.end += Pos(end - at)
	l.pending += end - at
	if l.idle {
		l.idle = false
		signal(l.wake)
	}
	return l.end, nil
}
