package forward

import (
	"log/slog"
	"sync"
	"time"
)

// troubleEvery is how often the log is told at most of one thing that goes wrong again and
// again.
const troubleEvery = time.Minute

// trouble tells the log of errors that may come thousands a second: of the first at once,
// then once in troubleEvery, with how many there were.
type trouble struct {
	log  *slog.Logger
	what string

	mu     sync.Mutex
	told   time.Time
	untold int   // errors since then
	last   []any // of the latest of them
}

// note takes in an error, with what there is to say of it.
func (t *trouble) note(attrs ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.untold++
	t.last = attrs
	if t.told.IsZero() || time.Since(t.told) >= troubleEvery {
		t.tell()
	}
}

// tick tells what its time has come for. It is called every few seconds.
func (t *trouble) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.untold > 0 && time.Since(t.told) >= troubleEvery {
		t.tell()
	}
}

// flush tells what was not told.
func (t *trouble) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.untold > 0 {
		t.tell()
	}
}

// tell is called with t.mu held.
func (t *trouble) tell() {
	t.log.Warn(t.what, append(t.last, "times", t.untold)...)
	t.told, t.untold, t.last = time.Now(), 0, nil
}
