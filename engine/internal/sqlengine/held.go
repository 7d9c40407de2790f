package sqlengine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// held are the leases that this engine took for its own process. Close releases those that are
// left, so that their messages need not wait for the deadline.
type held struct {
	mu     sync.Mutex
	leases map[string]int64 // deadlines in milliseconds, by token
	swept  int              // how many were left after the last removal of overdue ones
}

// heldLeast is the number of leases above which overdue ones are removed.
const heldLeast = 10_000

func (h *held) add(l *engine.Lease, now int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.leases) >= max(heldLeast, 2*h.swept) {
		maps.DeleteFunc(h.leases, func(_ string, deadline int64) bool { return deadline <= now })
		h.swept = len(h.leases)
	}
	h.leases[l.Token] = l.Deadline.UnixMilli()
}

// settled records leases that ended or were extended.
func (h *held) settled(s []engine.Settlement, became []engine.Settled) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range s {
		if _, ok := h.leases[s[i].Token]; !ok || became[i].Err != nil {
			continue
		}
		if s[i].Do == engine.Extend {
			h.leases[s[i].Token] = became[i].Until.UnixMilli()
		} else {
			delete(h.leases, s[i].Token)
		}
	}
}

// giveBackWithin bounds how long Close tries to release leases.
const giveBackWithin = 5 * time.Second

// giveBack releases all held leases. If that fails, they lapse.
func (e *Engine) giveBack() {
	e.held.mu.Lock()
	var back []engine.Settlement
	for token := range e.held.leases {
		back = append(back, engine.Settlement{Token: token, Do: engine.Release})
	}
	clear(e.held.leases)
	e.held.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
	defer cancel()
	for len(back) > 0 && ctx.Err() == nil {
		n := min(len(back), chunk)
		_, _ = e.settle(ctx, back[:n], NoTimeout)
		back = back[n:]
	}
}

// chunk is the most rows that one transaction of a call over any number of rows changes.
const chunk = 1000
