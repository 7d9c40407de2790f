package wal

// Prepared is the long middle of an entry. It is copied, without any lock, before the entry is
// appended.
type Prepared struct {
	b        []byte // with room before and after the middle
	from, to int    // where the middle is
	give     func()
}

// preparedTail is how many bytes may follow the middle: if there are more, the middle is
// copied again.
const preparedTail = 4 << 10

// Prepare copies the middle of an entry to the memory that room returns. If the entry then has
// more than head bytes before it, the middle is copied again. give is called, by any
// goroutine, once the entry is written, or by Drop.
func Prepare(head int, middle []byte, room func(bytes int) (b []byte, give func())) *Prepared {
	from := frameSize + maxEntryHead + head
	b, give := room(from + len(middle) + preparedTail + align)
	return &Prepared{b, from, from + copy(b[from:], middle), give}
}

// Drop gives the memory back. It is for a Prepared that is not appended.
func (p *Prepared) Drop() { p.give() }

// AppendPrepared is Append for a prepared middle between a head and a tail, which are copied.
// p is the log's afterwards, even after an error.
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
