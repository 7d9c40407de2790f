package calls

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// Gate admits the calls of an engine until it is closed, and then reports when the last one
// has ended. The zero value is open. Its methods are safe for concurrent use and never wait.
type Gate struct {
	active atomic.Int64 // calls under way; after Close, shut is added

	mu   sync.Mutex
	idle chan struct{} // made by Close
	once sync.Once     // closes idle
}

const shut = math.MinInt64

// Enter begins a call. It fails if ctx has ended or the engine is closed. If it succeeds, the
// caller calls Leave once.
func (g *Gate) Enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &engine.Error{Op: op, Err: err}
	}
	if !g.TryEnter() {
		return Closed(op)
	}
	return nil
}

// Closed returns the error of a call on a closed engine.
func Closed(op string) error {
	return &engine.Error{Op: op, Err: engine.ErrClosed, Hint: "the engine was closed"}
}

// TryEnter is Enter for work without a context. It reports whether the work may begin.
func (g *Gate) TryEnter() bool {
	if g.active.Add(1) > 0 {
		return true
	}
	g.Leave()
	return false
}

// Leave ends a call.
func (g *Gate) Leave() {
	// Refused calls come here too, so the count may reach shut more than once.
	if g.active.Add(-1) == shut {
		g.once.Do(func() { close(g.idle) })
	}
}

// Close admits no more calls. It returns a channel that is closed when the last call has
// ended, the same channel each time.
func (g *Gate) Close() (idle <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
		if g.active.Add(shut) == shut {
			g.once.Do(func() { close(g.idle) })
		}
	}
	return g.idle
}
