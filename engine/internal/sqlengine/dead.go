package sqlengine

import (
	"math"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

func boundsDead(s *engine.Settings) bool { return s.DeadMax > 0 }

// keeps returns the earliest death of the messages that are kept.
func (h *Heads) keeps(ms int64) int64 {
	if h.Settings.DeadKeep == 0 {
		return math.MinInt64
	}
	return ms - rules.Millis(h.Settings.DeadKeep)
}

// dropOld drops expired dead messages and memories, at most a chunk of each queue.
func (w *work) dropOld(queues []int64) error {
	for _, q := range queues {
		h := w.queues[q]
		if h.Forgotten <= w.ms {
			over, err := w.tx.Over(w.ctx, q, h.Forgotten, w.ms, never, chunk)
			if err != nil {
				return err
			}
			for i := range over {
				if m := &over[i]; w.keys[m.Name] == nil {
					w.keys[m.Name] = &keyState{stored: m}
				}
			}
		}
		if keeps := h.keeps(w.ms); h.Dead < keeps {
			if err := w.dropDead(Range{Queue: q, Kind: Dead, Span: h.First.until(Dead, keeps-1), Most: chunk, Lock: Skip}); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropDead drops dead messages.
func (w *work) dropDead(r Range) error {
	found, err := w.tx.Ranges(w.ctx, []Range{r})
	if err != nil {
		return err
	}
	for _, x := range w.adopt(found[0]) {
		if x.Kind == Dead {
			w.drop(x)
		}
	}
	return nil
}

// boundDead drops the oldest dead messages of queues with more than dead_max, if any message
// died in this work. It locks these queues. The rest of the call no longer finds the dropped
// messages.
func (w *work) boundDead() error {
	died := w.queuesWhere(func(q *queue) bool { return q.died && boundsDead(&q.Settings) })
	if len(died) == 0 {
		return nil
	}
	for _, q := range died {
		w.queues[q].died = false
	}
	if err := w.mustLock(died); err != nil {
		return err
	}
	if err := w.write(); err != nil {
		return err
	}
	w.clean()
	for _, q := range died {
		if err := w.dropExcess(q); err != nil {
			return err
		}
	}
	return nil
}

// dropExcess drops the excess dead messages of a queue, at most a chunk.
func (w *work) dropExcess(q int64) error {
	s, err := w.tx.Stock(w.ctx, []int64{q}, w.ms)
	crowd := s[q].Dead - w.queues[q].Settings.DeadMax
	if err != nil || crowd <= 0 {
		return err
	}
	return w.dropDead(Range{Queue: q, Kind: Dead, Span: codec.WholeList, Most: int(min(crowd, chunk)), Lock: Wait})
}
