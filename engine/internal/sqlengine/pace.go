package sqlengine

import (
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

func rateOf(s *engine.Settings) rules.Rate { return rules.Rate{PerSecond: s.Rate, Burst: s.Bursts()} }

func (h *Heads) bucket() rules.Bucket { return rules.Since(time.UnixMicro(h.Base)) }

// grantable returns how many of n more leases the settings of a queue allow now. A queue with
// such settings is locked.
func (w *work) grantable(q int64, n int) (int, error) {
	h := w.queues[q]
	if most := h.Settings.InFlight; most > 0 {
		leased, err := w.tx.Holding(w.ctx, q, w.ms)
		if err != nil {
			return 0, err
		}
		n = int(min(int64(n), max(0, most-leased)))
	}
	if h.Settings.Rate > 0 {
		b := h.bucket()
		n = min(n, b.Allows(w.now, rateOf(&h.Settings)))
	}
	return n, nil
}

// pass records n leases under a queue's rate. It also records that the clock was set back.
func (w *work) pass(q int64, n int) {
	h := w.queues[q]
	if h.Settings.Rate == 0 {
		return
	}
	b := h.bucket()
	b.Allows(w.now, rateOf(&h.Settings)) // brings it up to date
	if n == 0 && !b.Base().Before(time.UnixMicro(h.Base)) {
		return // the clock has not been set back
	}
	b.Take(n, rateOf(&h.Settings))
	h.Base = b.Base().UnixMicro()
	h.dirty = true
}

// nextAllowed returns when the rate allows another lease.
func (w *work) nextAllowed(q int64) int64 {
	h := w.queues[q]
	if h.Settings.Rate == 0 {
		return math.MaxInt64
	}
	b := h.bucket()
	if b.Allows(w.now, rateOf(&h.Settings)) > 0 {
		return math.MaxInt64
	}
	return b.Next(rateOf(&h.Settings)).Add(time.Millisecond - 1).UnixMilli()
}
