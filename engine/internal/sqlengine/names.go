package sqlengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// names caches the numbers of queues. A queue's number never changes and is never used again.
type names struct {
	mu      sync.RWMutex
	numbers map[string]int64
}

// NewNumber returns a random number for a new queue. After a failover that lost transactions,
// a sequence would repeat numbers, and a process's cache would mistake one queue for another.
func NewNumber() int64 { return 1 + rand.Int64N(1<<57) }

// gone turns ErrGone into an error for callers, and clears the cached numbers so that the
// next call reads them again.
func (e *Engine) gone(op string, err error) error {
	if !errors.Is(err, ErrGone) {
		return err
	}
	e.names.mu.Lock()
	clear(e.names.numbers)
	e.names.mu.Unlock()
	if e.cfg.later != nil {
		return &engine.Error{Op: op, Err: engine.ErrInvalid, Hint: "the transaction does not see the queue: begin it as READ COMMITTED, and try again"}
	}
	return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: "a queue is no longer in the database, as after a failover that lost transactions: try again"}
}

// heads is Store.Heads for callers.
func (e *Engine) heads(ctx context.Context, op string, from []LowBound) (now time.Time, heads []Heads, err error) {
	now, heads, err = e.store.Heads(ctx, from)
	if err == nil && len(heads) < len(from) {
		err = ErrGone
	}
	return now, heads, e.gone(op, err)
}

// numbers returns the numbers of queues; 0: the queue does not exist and create is false.
func (e *Engine) numbers(ctx context.Context, queues []string, create bool) ([]int64, error) {
	found := e.names.of(queues)
	var missing []string
	var at []int
	for i, n := range found {
		if n == 0 {
			missing, at = append(missing, queues[i]), append(at, i)
		}
	}
	if missing == nil {
		return found, nil
	}
	numbers, err := e.lookUp(ctx, missing, create)
	if err != nil {
		return nil, err
	}
	e.names.mu.Lock()
	defer e.names.mu.Unlock()
	for i, n := range numbers {
		if found[at[i]] = n; n != 0 {
			e.names.numbers[missing[i]] = n
		}
	}
	return found, nil
}

// lookUp asks the store for the numbers of queues. In a caller's transaction only new queues
// need another connection.
func (e *Engine) lookUp(ctx context.Context, queues []string, create bool) (numbers []int64, err error) {
	if e.cfg.later != nil {
		numbers, err = e.store.Names(ctx, queues, false)
		if err != nil || !create || !slices.Contains(numbers, 0) {
			return numbers, err
		}
	}
	err = e.beside(ctx, "queue", func(ctx context.Context) error {
		numbers, err = e.store.Names(ctx, queues, create)
		return err
	})
	return numbers, err
}

func (n *names) of(queues []string) []int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	found := make([]int64, len(queues))
	for i, name := range queues {
		found[i] = n.numbers[name]
	}
	return found
}

// number is numbers for one queue.
func (e *Engine) number(ctx context.Context, queue string, create bool) (int64, error) {
	n, err := e.numbers(ctx, []string{queue}, create)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}
