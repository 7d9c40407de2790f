package notify

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Lines limits log lines that outsiders can trigger as often as they like. It decides which
// lines to write, and counts the lines skipped before each of them. It is safe for concurrent
// use.
type Lines struct {
	limit *rate.Limiter

	mu      sync.Mutex
	skipped int
}

// NewLines returns Lines that allow first lines at once, and then one in each interval of every.
// After a quiet time they again allow up to first lines at once.
func NewLines(first int, every time.Duration) *Lines {
	return &Lines{limit: rate.NewLimiter(rate.Every(every), first)}
}

// Skip counts a line that the caller skips.
func (l *Lines) Skip() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped++
}

// Next reports whether to write the next line, and how many were skipped since the last one
// written.
func (l *Lines) Next() (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.Allow() {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}

// asyncHandler is a slog.Handler that writes from a goroutine of its own, since its callers
// may hold a lock or have leases to renew. While maxWaitingLines wait, further lines are
// dropped and counted.
type asyncHandler struct {
	slog.Handler
	out *Notifier[logLine]
}

type logLine struct {
	to     slog.Handler
	record slog.Record
}

const (
	maxWaitingLines = 1000
	logPatience     = time.Second // how long the end of a client or worker waits for the last lines
)

// Logger returns a logger that never blocks.
func Logger(l *slog.Logger) *slog.Logger {
	if _, ok := l.Handler().(*asyncHandler); ok {
		return l
	}
	var missed atomic.Int64
	a := &asyncHandler{Handler: l.Handler()}
	a.out = &Notifier[logLine]{
		Call: func(l logLine) {
			defer func() { _ = recover() }() // there is nowhere else to report it
			if l.to.Enabled(context.Background(), l.record.Level) {
				_ = l.to.Handle(context.Background(), l.record)
			}
			if n := missed.Swap(0); n > 0 {
				r := slog.NewRecord(time.Now(), slog.LevelWarn, "the log was too slow for some lines", 0)
				r.Add("missed", n)
				_ = l.to.Handle(context.Background(), r)
			}
		},
		Most:   maxWaitingLines,
		Missed: func() { missed.Add(1) },
	}
	return slog.New(a)
}

// FlushLog waits briefly for the last lines.
func FlushLog(l *slog.Logger) {
	if a, ok := l.Handler().(*asyncHandler); ok {
		a.out.Flush(logPatience)
	}
}

// Enabled leaves the answer to the goroutine: the user's handler might block.
func (a *asyncHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle queues the record.
func (a *asyncHandler) Handle(_ context.Context, r slog.Record) error {
	a.out.Add(logLine{a.Handler, r.Clone()})
	return nil
}

// WithAttrs returns the handler with more attributes.
func (a *asyncHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &asyncHandler{a.Handler.WithAttrs(attrs), a.out}
}

// WithGroup returns the handler with a group opened.
func (a *asyncHandler) WithGroup(name string) slog.Handler {
	return &asyncHandler{a.Handler.WithGroup(name), a.out}
}

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
