// Package trouble tells a log of what may go wrong thousands of times a second, in few
// lines and bounded memory.
package trouble

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Every is how long the first lines of a kind are followed by a single one.
	Every = time.Minute

	// maxOwn is how many kinds and queues at a time have lines of their own. Those of
	// further queues share one for each kind.
	maxOwn = 32
)

// Kind is something that goes wrong again and again.
type Kind struct {
	Text  string
	Level slog.Level
	First int // how many are told at once; 0: one
}

// Log tells a log of trouble, kind by kind and queue by queue: the first at once, then
// at most one line in Every, with the latest and how many there were. It has no
// goroutine. Make one with New.
type Log struct {
	to *slog.Logger

	mu  sync.Mutex
	all map[key]*entry
}

type key struct{ text, queue string }

type entry struct {
	kind   Kind
	told   int
	untold int
	last   []any // attributes of the latest untold one
	timer  *time.Timer
}

// New returns a Log that tells l.
func New(l *slog.Logger) *Log { return &Log{to: l, all: make(map[key]*entry)} }

// Note takes in that something went wrong, with attributes that say what.
func (l *Log) Note(kind Kind, queue string, attrs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := key{kind.Text, queue}
	e := l.all[k]
	if e == nil && len(l.all) >= maxOwn {
		k.queue = ""
		e = l.all[k]
	}
	if e == nil {
		e = &entry{kind: kind}
		l.all[k] = e
		e.timer = time.AfterFunc(Every, func() { l.sum(k, e) })
	}
	e.untold++
	e.last = attrs
	if e.told < max(kind.First, 1) {
		l.tell(e)
	}
}

// sum tells what has come since the last line. An entry to which nothing has come goes.
func (l *Log) sum(k key, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.all[k] != e: // flushed meanwhile
	case e.untold == 0:
		delete(l.all, k)
	default:
		l.tell(e)
		e.timer.Reset(Every)
	}
}

// Flush tells what was not told, and forgets what was.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.all {
		e.timer.Stop()
		if e.untold > 0 {
			l.tell(e)
		}
		delete(l.all, k)
	}
}

// tell is called with l.mu held.
func (l *Log) tell(e *entry) {
	l.to.Log(context.Background(), e.kind.Level, e.kind.Text, append(e.last, "times", e.untold)...)
	e.told++
	e.untold, e.last = 0, nil
}
