package trend

import "sync/atomic"

// budget bounds the bytes of all logs.
type budget struct {
	most   int64
	used   atomic.Int64
	queues atomic.Int64
}

// hold records how many bytes a history takes. If all take too many, a history with more
// than its share drops its oldest slots.
//
// Only queues with activity come here. An idle queue got above its share while all queues
// took less than half of most, so the active ones can take at most the other half.
func (b *budget) hold(h *history) {
	b.note(h)
	if b.used.Load() <= b.most/2 {
		return
	}
	if share := b.most / 2 / max(b.queues.Load(), 1); h.held > share {
		h.shrink(share * 3 / 4) // rarely
		b.note(h)
	}
}

// note updates the bytes in use after a history has changed.
func (b *budget) note(h *history) {
	now := h.capacity()
	b.used.Add(now - h.held)
	h.held = now
}
