package redisengine

import (
	"context"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// held are the leases that this engine took for its own process. Close releases them, so that
// they need not lapse first. Settlements use them to skip a round trip for the backoff, and
// to show the lease's secret: see newSecret.
type held struct {
	mu     sync.Mutex
	leases map[string]lease // by token
	swept  int              // how many were left after the last cleanup
}

type lease struct {
	deadline int64 // milliseconds
	attempt  uint32
	backoff  []time.Duration
	secret   string
}

// heldLeast is the number of leases above which expired ones are removed.
const heldLeast = 10_000

func (h *held) add(l *engine.Lease, now int64, secret string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.leases) >= max(heldLeast, 2*h.swept) {
		for token, l := range h.leases {
			if l.deadline <= now {
				delete(h.leases, token)
			}
		}
		h.swept = len(h.leases)
	}
	h.leases[l.Token] = lease{l.Deadline.UnixMilli(), l.Attempt, append([]time.Duration(nil), l.Backoff...), secret}
}

func (h *held) get(token string) (lease, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.leases[token]
	return l, ok
}

func (h *held) remove(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, token)
}

// giveBack releases all held leases. A lease that cannot be released lapses.
func (e *Engine) giveBack() {
	e.held.mu.Lock()
	var back []engine.Settlement
	for token := range e.held.leases {
		back = append(back, engine.Settlement{Token: token, Do: engine.Release})
	}
	clear(e.held.leases)
	e.held.mu.Unlock()
	if len(back) > 0 && !e.forget {
		ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
		defer cancel()
		_, _ = e.settle(ctx, back)
	}
}
