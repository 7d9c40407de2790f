package work

import (
	"context"
	"sync/atomic"
	"time"
)

// Handling is how a worker handles one queue.
type Handling struct {
	Queue   string
	Handle  func(context.Context, *Delivery) error
	Slots   int // concurrent handlers; 0: only the worker's bound
	Timeout time.Duration

	free atomic.Int64 // free slots; written with Worker.mu held

	// Guarded by Worker.mu.
	running int             // handlers
	queued  int             // leased, not started
	line    fifo[*Delivery] // deliveries that wait for a runner
	inTurn  bool
}
