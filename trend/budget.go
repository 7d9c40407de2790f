package trend

import "sync/atomic"

// budget bounds the bytes of all logs.
type budget struct {
	most   int64
	used   atomic.Int64
	queues atomic.Int64
}

// hold takes note of how many bytes a history takes. While all take too many, one that has
// more than its share of them forgets what lies furthest back.
//
// Those that have more than their share but rest, so that nobody meets them, had it when all
// took less than half of most; all others together have no more than the other half.
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

func (b *budget) note(h *history) {
	now := h.capacity()
	b.used.Add(now - h.held)
	h.held = now
}
