package calls

import (
	"context"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Held are the leases that an engine took for its own process, each with what the engine
// wants to remember of it. The engine's Close releases those that are left, so that their
// messages need not wait for the deadline. The zero value is ready to use.
type Held[T any] struct {
	mu     sync.Mutex
	leases map[string]heldLease[T] // by token
	swept  int                     // how many were left after the last removal of overdue ones
}

type heldLease[T any] struct {
	deadline time.Time
	of       T
}

// heldLeast is the number of leases above which overdue ones are removed.
const heldLeast = 10_000

// Add adds a lease. now is the engine's clock.
func (h *Held[T]) Add(l *engine.Lease, of T, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases == nil {
		h.leases = make(map[string]heldLease[T])
	}
	if len(h.leases) >= max(heldLeast, 2*h.swept) {
		for token, l := range h.leases {
			if !l.deadline.After(now) {
				delete(h.leases, token)
			}
		}
		h.swept = len(h.leases)
	}
	h.leases[l.Token] = heldLease[T]{l.Deadline, of}
}

// Get returns what is remembered of a lease.
func (h *Held[T]) Get(token string) (of T, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.leases[token]
	return l.of, ok
}

// Settled records leases that ended or were extended.
func (h *Held[T]) Settled(s []engine.Settlement, became []engine.Settled) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range s {
		l, ok := h.leases[s[i].Token]
		switch {
		case !ok || became[i].Err != nil:
		case s[i].Do == engine.Extend:
			h.leases[s[i].Token] = heldLease[T]{became[i].Until, l.of}
		default:
			delete(h.leases, s[i].Token)
		}
	}
}

// Replaced records leases that pushes with their tokens ended.
func (h *Held[T]) Replaced(msgs []engine.Message, results []engine.PushResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range msgs {
		if token := msgs[i].Token; token != "" && results[i].Err == nil {
			delete(h.leases, token)
		}
	}
}

// How long GiveBack tries, and how many leases it releases in a call.
const (
	giveBackWithin = 5 * time.Second
	giveBackAtOnce = 1000
)

// GiveBack releases all leases by settle. If that fails, they lapse.
func (h *Held[T]) GiveBack(settle func(context.Context, []engine.Settlement) ([]engine.Settled, error)) {
	h.mu.Lock()
	var back []engine.Settlement
	for token := range h.leases {
		back = append(back, engine.Settlement{Token: token, Do: engine.Release})
	}
	clear(h.leases)
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
	defer cancel()
	for len(back) > 0 && ctx.Err() == nil {
		n := min(len(back), giveBackAtOnce)
		_, _ = settle(ctx, back[:n])
		back = back[n:]
	}
}
