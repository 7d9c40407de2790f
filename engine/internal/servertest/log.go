package servertest

import (
	"bytes"
	"sync"
)

// log stores a server's output, and recognises a ready text.
type log struct {
	readyTexts []string
	ready      chan struct{} // closed when a ready text was written

	mu   sync.Mutex
	text bytes.Buffer
	told bool
}

func newLog(readyTexts []string) *log {
	return &log{readyTexts: readyTexts, ready: make(chan struct{})}
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.told {
		return len(p), nil
	}
	// A text may be split over two writes.
	from := max(0, l.text.Len()-len(p)-lookBack)
	for _, text := range l.readyTexts {
		if bytes.Contains(l.text.Bytes()[from:], []byte(text)) {
			l.told = true
			close(l.ready)
			break
		}
	}
	return len(p), nil
}

// lookBack is longer than any ready text.
const lookBack = 1 << 10

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
