package trend

import (
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
)

// Series is what happened to a queue, step by step. The last step has not ended.
type Series struct {
	Queue string
	From  time.Time // when the first begins
	Step  time.Duration
	Slots []Slot
}

// Total sums up the steps.
func (s *Series) Total() (all Slot) {
	for i := range s.Slots {
		all.add(&s.Slots[i])
	}
	return all
}

// MaxSpan is how far back what happened is kept.
const MaxSpan = 72 * time.Hour

// MaxSteps is how many steps a Series may have.
const MaxSteps = 1000

// Step is the finest step that a Series over a span can have: 10s up to 15m, 1m up to 6h,
// else 10m.
func Step(span time.Duration) time.Duration { return levels[reaching(span)].step() }

// reaching is the finest level that is kept for a span.
func reaching(span time.Duration) int {
	for i, l := range levels {
		if span <= l.reach() {
			return i
		}
	}
	return len(levels) - 1
}

// Check refuses a span and step of which there is no Series.
func Check(span, step time.Duration) error {
	finest := Step(span)
	switch {
	case span <= 0 || span > MaxSpan:
		return fmt.Errorf("span: %s is not within %s", tarry.FormatDuration(span), tarry.FormatDuration(MaxSpan))
	case step <= 0 || step%finest != 0:
		return fmt.Errorf("step: %s is no multiple of %s, which is the finest of a span of %s", tarry.FormatDuration(step), tarry.FormatDuration(finest), tarry.FormatDuration(span))
	case span%step != 0:
		return fmt.Errorf("step: the span of %s is no multiple of %s", tarry.FormatDuration(span), tarry.FormatDuration(step))
	case span/step > MaxSteps:
		return fmt.Errorf("step: %s makes more than %d steps of %s", tarry.FormatDuration(step), MaxSteps, tarry.FormatDuration(span))
	}
	return nil
}

// Series returns what happened to a queue, or to Other, in the last steps that make up a
// span, the one that has not ended included; Check says which there are. It is empty of a
// queue to which nothing happened. Slots that the caller needs no more may be given, for
// less garbage.
func (r *Recorder) Series(queue string, span, step time.Duration, reuse ...Slot) (Series, error) {
	if err := Check(span, step); err != nil {
		return Series{}, err
	}
	count, n, per := int(span/step), r.slot(), int64(step/Resolution)
	from := first(n, count, per)
	if cap(reuse) < count {
		reuse = make([]Slot, count)
	}
	s := Series{Queue: queue, From: begin(from), Step: step, Slots: reuse[:count]}
	clear(s.Slots)
	h := r.other
	if queue != Other {
		known, ok := r.named.Load(queue)
		if !ok {
			return s, nil
		}
		h = known.(*history)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.gone {
		h.roll(n, &r.budget)
	}
	h.read(from, reaching(span), per, s.Slots)
	return s, nil
}

// From is when the first step of the series over a span begins by now.
func (r *Recorder) From(span, step time.Duration) time.Time {
	return begin(first(r.slot(), int(span/step), int64(step/Resolution)))
}

// first is the number of the slot with which so many steps of per slots each begin, of
// which the last has slot n.
func first(n int64, count int, per int64) int64 { return (n/per - int64(count) + 1) * per }

// begin is when a slot begins.
func begin(n int64) time.Time { return time.UnixMilli(n * Resolution.Milliseconds()).UTC() }
