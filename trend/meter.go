package trend

import (
	"math"
	"time"

	"github.com/tarryhq/tarry"
)

// Meter returns the meter that records in r, for tarry.Config.Meter.
func (r *Recorder) Meter() *tarry.Meter {
	return &tarry.Meter{
		Pushed: func(queue string, _ tarry.Outcome, err error, n int) {
			if err == nil {
				r.count(queue, Pushed, n)
			}
		},
		Cancelled: func(queue string, err error, n int) {
			if err == nil {
				r.count(queue, Cancelled, n)
			}
		},
		Leased: func(queue string, n int) {
			if n > 0 {
				r.count(queue, Leased, n)
			}
		},
		Ended: func(queue string, expired, died int) {
			r.count(queue, Expired, max(expired, 0))
			r.count(queue, Died, max(died, 0))
		},
		Settled: func(queue string, as tarry.EventKind, n int) {
			if k := byEvent[as]; k != 0 {
				r.count(queue, k-1, n)
			}
		},
		Started: func(queue string, lateness time.Duration) {
			h := r.met(queue)
			h.now.Lateness.observe(lateness)
			h.mu.Unlock()
		},
		Handled: r.handled,
	}
}

// met returns the history of a queue, locked and advanced to the current slot. It counts an
// event.
func (r *Recorder) met(queue string) *history {
	n := r.slot()
	h := r.of(queue, n)
	h.mu.Lock()
	for h.gone {
		h.mu.Unlock()
		h = r.of(queue, n)
		h.mu.Lock()
	}
	if n != h.at {
		h.roll(n, &r.budget)
	}
	h.some, h.last = true, n
	h.met++
	return h
}

func (r *Recorder) count(queue string, k Kind, n int) {
	if n == 0 {
		return
	}
	h := r.met(queue)
	h.now.Counts[k] += uint64(n)
	h.mu.Unlock()
}

// byEvent maps events to kinds, plus 1; 0: the event is not counted.
var byEvent = [math.MaxUint8 + 1]Kind{
	tarry.Acked: Acked + 1, tarry.Dropped: Acked + 1, tarry.SelfSettled: Acked + 1, tarry.Retried: Retried + 1, tarry.Snoozed: Released + 1,
	tarry.Released: Released + 1, tarry.Buried: Died + 1, tarry.Died: Died + 1, tarry.LeaseLost: Lost + 1,
}

// handled counts the results of this process's workers.
func (r *Recorder) handled(events []tarry.Event) {
	var h *history
	last := ""
	for i := range events {
		e := &events[i]
		k := byEvent[e.Kind]
		if k == 0 || e.Queue == "" {
			continue
		}
		if h == nil || e.Queue != last {
			if h != nil {
				h.mu.Unlock()
			}
			h, last = r.met(e.Queue), e.Queue
		}
		h.now.Counts[k-1]++
		if e.Duration > 0 {
			h.now.Handling.observe(e.Duration)
		}
	}
	if h != nil {
		h.mu.Unlock()
	}
}
