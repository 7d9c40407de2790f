package redistest

import (
	"bytes"
	"strings"
	"sync"
)

// Redis says the one when it has loaded its data, a sentinel the other.
var readyLines = []string{"Ready to accept connections", "Sentinel ID is"}

// log keeps what a server writes, and watches for its being ready.
type log struct {
	ready chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	told bool
}

func newLog() *log { return &log{ready: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.told {
		return len(p), nil
	}
	for _, line := range readyLines {
		if strings.Contains(l.text.String(), line) {
			l.told = true
			close(l.ready)
			break
		}
	}
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
