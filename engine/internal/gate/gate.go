// Package gate admits the calls of an engine while it is open, and tells when those
// under way at its close have ended.
package gate

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// Gate counts the calls under way. The zero value is open. Its methods may be called
// from many goroutines, and never wait.
type Gate struct {
	under atomic.Int64 // calls under way, from Close on less by shut

	mu   sync.Mutex
	idle chan struct{} // made by Close
	once sync.Once     // closes idle
}

const shut = math.MinInt64

// Enter begins a call, or says why there is none: its context is over, or the engine
// closed. A call that was let in calls Leave once.
func (g *Gate) Enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &engine.Error{Op: op, Err: err}
	}
	if !g.TryEnter() {
		return Closed(op)
	}
	return nil
}

// Closed is the error of a call on an engine that was closed.
func Closed(op string) error {
	return &engine.Error{Op: op, Err: engine.ErrClosed, Hint: "the engine was closed"}
}

// TryEnter begins work without a context or a caller, and reports whether it may.
func (g *Gate) TryEnter() bool {
	if g.under.Add(1) > 0 {
		return true
	}
	g.Leave()
	return false
}

// Leave ends a call.
func (g *Gate) Leave() {
	// A call that was turned away may be the last to leave, and not the only one.
	if g.under.Add(-1) == shut {
		g.once.Do(func() { close(g.idle) })
	}
}

// Close admits no more calls, and returns what is closed when the last has ended. Each
// Close returns the same.
func (g *Gate) Close() (idle <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
		if g.under.Add(shut) == shut {
			g.once.Do(func() { close(g.idle) })
		}
	}
	return g.idle
}
