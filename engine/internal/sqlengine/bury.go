package sqlengine

import (
	"maps"
	"math"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

func boundsDead(s *engine.Settings) bool { return s.DeadMax > 0 }

// keeps is since when messages may be dead that are not gone.
func (h *Heads) keeps(ms int64) int64 {
	if h.Settings.DeadKeep == 0 {
		return math.MinInt64
	}
	return ms - millis(h.Settings.DeadKeep)
}

// tidy drops the dead and the memories whose time is over, some of them.
func (w *work) tidy(queues []int64) error {
	for _, q := range queues {
		h := w.queues[q]
		if h.Forgotten <= w.ms {
			over, err := w.tx.Over(w.ctx, q, h.Forgotten, w.ms, never, chunk)
			if err != nil {
				return err
			}
			for i := range over {
				if m := &over[i]; w.seats[m.Name] == nil {
					w.seats[m.Name] = &seat{stored: m}
				}
			}
		}
		if keeps := h.keeps(w.ms); h.Dead < keeps {
			if _, err := w.dropDead(Range{Queue: q, Kind: Dead, Span: h.First.until(Dead, keeps-1), Most: chunk, Lock: Skip}); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropDead drops dead messages, and returns how many.
func (w *work) dropDead(r Range) (n int, err error) {
	found, err := w.tx.Ranges(w.ctx, []Range{r})
	if err != nil {
		return 0, err
	}
	for _, x := range w.adopt(found[0]) {
		if x.Kind == Dead {
			w.drop(x)
			n++
		}
	}
	return n, nil
}

// bury drops of queues in which something has died, and which bound their dead, those that
// are too many, the first ones first, so that what follows in the call does not meet them.
// The queues are locked then.
func (w *work) bury() error {
	died := slices.DeleteFunc(slices.Sorted(maps.Keys(w.died)), func(q int64) bool { return !boundsDead(&w.queues[q].Settings) })
	clear(w.died)
	if len(died) == 0 {
		return nil
	}
	if err := w.alone(died); err != nil {
		return err
	}
	if err := w.write(); err != nil {
		return err
	}
	w.clean()
	for _, q := range died {
		if err := w.thin(q); err != nil {
			return err
		}
	}
	return nil
}

// thin drops the dead of a queue that are too many, some of them.
func (w *work) thin(q int64) error {
	s, err := w.tx.Stock(w.ctx, []int64{q}, w.ms)
	crowd := s[q].Dead - w.queues[q].Settings.DeadMax
	if err != nil || crowd <= 0 {
		return err
	}
	_, err = w.dropDead(Range{Queue: q, Kind: Dead, Span: token.All, Most: int(min(crowd, chunk)), Lock: Wait})
	return err
}
