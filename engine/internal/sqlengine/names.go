package sqlengine

import (
	"context"
	"slices"
	"sync"
)

// names knows the numbers of queues, which never change.
type names struct {
	mu      sync.RWMutex
	numbers map[string]int64
}

// numbers returns the numbers of queues, 0 for one that is not there and is not to be made.
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

// lookUp asks the store for the numbers of queues. In a transaction of a caller's only what
// is new takes another connection.
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

// number is numbers of one.
func (e *Engine) number(ctx context.Context, queue string, create bool) (int64, error) {
	n, err := e.numbers(ctx, []string{queue}, create)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}
