package trend

import "sync/atomic"

// budget bounds the bytes of all histories.
type budget struct {
	maxBytes int64
	used     atomic.Int64
	queues   atomic.Int64
}

// charge records how many bytes a history takes. If all take too many, a history with more
// than its share drops its oldest slots.
//
// Only queues with activity come here. Idle queues above their share got there while all
// queues took less than half of maxBytes, so the active ones can take at most the other half.
func (b *budget) charge(h *history) {
	b.update(h)
	if b.used.Load() <= b.maxBytes/2 {
		return
	}
	if share := b.maxBytes / 2 / max(b.queues.Load(), 1); h.heldBytes > share {
		h.shrink(share * 3 / 4) // rarely
		b.update(h)
	}
}

// update updates the bytes in use after a history has changed.
func (b *budget) update(h *history) {
	now := h.capacity()
	b.used.Add(now - h.heldBytes)
	h.heldBytes = now
}
