package notify

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// TroubleInterval is the interval between lines of a kind, after the first ones.
	TroubleInterval = time.Minute

	// maxOwn is how many pairs of kind and queue have lines of their own at a time. Further
	// queues share one line for each kind.
	maxOwn = 32
)

// Trouble is a kind of recurring trouble.
type Trouble struct {
	Text  string
	Level slog.Level
	First int // how many get a line at once; 0: one
}

// TroubleLog logs trouble by kind and queue, in few lines and bounded memory: the first
// Trouble.First at once, and then at most one line in TroubleInterval, with the latest
// attributes and a count. It has no goroutine. Make one with NewTroubleLog.
type TroubleLog struct {
	to *slog.Logger

	mu  sync.Mutex
	all map[key]*entry
}

type key struct{ text, queue string }

type entry struct {
	kind    Trouble
	logged  int
	pending int
	last    []any // attributes of the latest pending one
	timer   *time.Timer
}

// NewTroubleLog returns a TroubleLog that writes to l.
func NewTroubleLog(l *slog.Logger) *TroubleLog { return &TroubleLog{to: l, all: make(map[key]*entry)} }

// Note records that something went wrong, with attributes that say what.
func (l *TroubleLog) Note(kind Trouble, queue string, attrs ...any) {
	l.NoteMany(kind, queue, 1, attrs...)
}

// NoteMany records that something went wrong so many times.
func (l *TroubleLog) NoteMany(kind Trouble, queue string, times int, attrs ...any) {
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
		e.timer = time.AfterFunc(TroubleInterval, func() { l.logPending(k, e) })
	}
	e.pending += times
	e.last = attrs
	if e.logged < max(kind.First, 1) {
		l.write(e)
	}
}

// logPending logs the trouble since the last line. If there was none, it removes the entry.
func (l *TroubleLog) logPending(k key, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.pending == 0 {
		delete(l.all, k)
		return
	}
	l.write(e)
	e.timer.Reset(TroubleInterval)
}

// Flush logs what is pending at once. What comes later still gets a line a minute.
func (l *TroubleLog) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e.pending > 0 {
			l.write(e)
		}
	}
}

// write writes a line for all that is pending. Called with l.mu held.
func (l *TroubleLog) write(e *entry) {
	l.to.Log(context.Background(), e.kind.Level, e.kind.Text, append(e.last, "times", e.pending)...)
	e.logged++
	e.pending, e.last = 0, nil
}
