package redisengine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// registry keeps the names of queues in use, for lists and for tokens. A queue is
// noted before the first push to it, and again as long as there are pushes; one found
// empty that nobody has noted for some time is forgotten.
type registry struct {
	names, seen, prints string // keys

	mu    sync.Mutex
	noted map[string]time.Time
}

const (
	noteAgain   = time.Hour
	forgetAfter = 2 * noteAgain
)

func newRegistry(prefix string) *registry {
	base := prefix + ":{queues}:"
	return &registry{names: base + "names", seen: base + "seen", prints: base + "prints", noted: make(map[string]time.Time)}
}

func (r *registry) keys() []string { return []string{r.names, r.seen, r.prints} }

// doubt makes every queue be noted again before the next push: a server that comes back
// may have forgotten.
func (r *registry) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.noted)
}

// note makes sure that a queue is in the registry.
func (e *Engine) note(ctx context.Context, q *queue) error {
	r := e.registry
	now := time.Now()
	r.mu.Lock()
	at, ok := r.noted[q.name]
	r.mu.Unlock()
	if ok && now.Sub(at) < noteAgain {
		return nil
	}
	values, err := e.eval1(ctx, request{registerScript, r.keys(), []string{q.name, q.print.String()}})
	if err != nil {
		return err
	}
	if name, err := values[0].ToString(); err != nil || name != q.name {
		return fmt.Errorf("%w: the names %q and %q have the same fingerprint; rename the new queue", engine.ErrInvalid, name, q.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.noted) >= maxQueues {
		clear(r.noted)
	}
	r.noted[q.name] = now
	return nil
}

// queueOf returns the queue of a fingerprint; nil: it is not known.
func (e *Engine) queueOf(ctx context.Context, print fingerprint) (*queue, error) {
	e.mu.RLock()
	q := e.printed[print]
	e.mu.RUnlock()
	if q != nil {
		return q, nil
	}
	name, err := e.client.Do(ctx, e.client.B().Hget().Key(e.registry.prints).Field(print.String()).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.queue(name), nil
}

// names returns queue names in order, behind one.
func (e *Engine) names(ctx context.Context, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	cmd := e.client.B().Zrangebylex().Key(e.registry.names).Min(from).Max("+").Limit(0, int64(limit)).Build()
	return e.client.Do(ctx, cmd).AsStrSlice()
}

// forgetQueues removes queues that were found empty from the registry, unless they have
// been noted lately.
func (e *Engine) forgetQueues(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	args := []string{string(appendInt(nil, int64(forgetAfter/time.Second)))}
	for _, name := range names {
		args = append(args, name, fingerprintOf(name).String())
	}
	// If it fails they are found again the next time.
	_, _ = e.eval1(ctx, request{forgetScript, e.registry.keys(), args})
}
