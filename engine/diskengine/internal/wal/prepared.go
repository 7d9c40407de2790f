package wal

// Prepared is an entry that is put together before it is appended, outside of all locks: appending it
// copies only what is added last.
type Prepared struct {
	Bytes []byte // of the entry, behind some that are the log's: to be appended to
	give  func()
}

const preparedHead = frameSize + maxEntryHead

// Prepare begins with an entry of about so many bytes. Where room is not nil it is put together in what
// that returns, and give is called once it is written, or when Drop is: by any goroutine, and it does not
// block.
func Prepare(bytes int, room func(bytes int) (b []byte, give func())) *Prepared {
	n := preparedHead + bytes + align
	if room == nil {
		return &Prepared{Bytes: make([]byte, preparedHead, n)}
	}
	b, give := room(n)
	return &Prepared{b[:preparedHead:n], give}
}

// Drop forgets an entry that is not appended.
func (p *Prepared) Drop() {
	if p.give != nil {
		p.give()
	}
}

// AppendPrepared is Append of what was prepared, and of a last part that is copied. The bytes are the
// log's afterwards.
func (l *Log) AppendPrepared(kind byte, p *Prepared, last []byte) (Pos, error) {
	b := append(p.Bytes, last...)
	if cap(b)-len(b) < align {
		b = append(b, make([]byte, align)...)[:len(b)]
	}
	n := len(b) - preparedHead
	var head [maxEntryHead]byte
	from := maxEntryHead - len(appendEntryHead(head[:0], kind, n)) // so that the head ends where the bytes begin
	appendEntryHead(b[from:from+frameSize], kind, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.takes(n); err != nil {
		p.Drop()
		return 0, err
	}
	if l.cur != nil {
		l.full, l.cur = append(l.full, l.cur), nil
	}
	l.full = append(l.full, &buffer{b: b[from:], back: p.give})
	size := len(b) - from - frameSize
	l.end += Pos(size)
	l.pending += size
	if l.idle {
		l.idle = false
		signal(l.wake)
	}
	return l.end, nil
}
