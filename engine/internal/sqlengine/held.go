package sqlengine

import (
	"context"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// held are the leases that this engine took for its own process: Close gives back what is
// left of them, so that nobody waits for them to lapse.
type held struct {
	mu     sync.Mutex
	leases map[string]int64 // deadlines in milliseconds, by token
	swept  int              // how many there were after those that are over were removed
}

// heldLeast is how many leases there are before those that are over are looked for.
const heldLeast = 10_000

func (h *held) add(l *engine.Lease, now int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.leases) >= max(heldLeast, 2*h.swept) {
		for token, deadline := range h.leases {
			if deadline <= now {
				delete(h.leases, token)
			}
		}
		h.swept = len(h.leases)
	}
	h.leases[l.Token] = l.Deadline.UnixMilli()
}

// settled takes note of leases that are over, or last longer.
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

// giveBackWithin bounds how long Close tries to give leases back.
const giveBackWithin = 5 * time.Second

// giveBack releases all leases held. What cannot be given back lapses.
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
		_, _ = e.settle(ctx, back[:n], Endless)
		back = back[n:]
	}
}

// chunk is how many rows a transaction changes at most where a call may ask for any number.
const chunk = 1000
