package trend

import (
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
)

// Series is the activity of a queue in steps. The last step is still in progress.
type Series struct {
	Queue string
	From  time.Time // start of the first step
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

// MaxSpan is how far back activity is kept.
const MaxSpan = 72 * time.Hour

// MaxSteps is the largest number of steps of a Series.
const MaxSteps = 1000

// Step returns the finest step of a Series over a span: 10s up to 15m, 1m up to 6h, else 10m.
func Step(span time.Duration) time.Duration { return levels[reaching(span)].step() }

// reaching returns the index of the finest level that covers a span.
func reaching(span time.Duration) int {
	for i, l := range levels {
		if span <= l.reach() {
			return i
		}
	}
	return len(levels) - 1
}

// Check returns an error if there is no Series with this span and step.
func Check(span, step time.Duration) error {
	finest := Step(span)
	switch {
	case span <= 0 || span > MaxSpan:
		return fmt.Errorf("span: %s is not within %s", tarry.FormatDuration(span), tarry.FormatDuration(MaxSpan))
	case step <= 0 || step%finest != 0:
		return fmt.Errorf("step: %s is not a multiple of %s, the finest step of a span of %s", tarry.FormatDuration(step), tarry.FormatDuration(finest), tarry.FormatDuration(span))
	case span%step != 0:
		return fmt.Errorf("step: the span of %s is not a multiple of %s", tarry.FormatDuration(span), tarry.FormatDuration(step))
	case span/step > MaxSteps:
		return fmt.Errorf("step: %s makes more than %d steps of %s", tarry.FormatDuration(step), MaxSteps, tarry.FormatDuration(span))
	}
	return nil
}

// Series returns the activity of a queue, or of Other, in the last steps of a span,
// including the step in progress. Check says which spans and steps are valid. For a queue
// without activity all steps are empty. The caller may pass slots that it no longer needs
// for reuse.
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

// From returns when the first step of a Series over a span begins, if it is read now.
func (r *Recorder) From(span, step time.Duration) time.Time {
	return begin(first(r.slot(), int(span/step), int64(step/Resolution)))
}

// first returns the number of the slot at which count steps of per slots each begin, if the
// last step contains slot n.
func first(n int64, count int, per int64) int64 { return (n/per - int64(count) + 1) * per }

// begin returns when a slot begins.
func begin(n int64) time.Time { return time.UnixMilli(n * Resolution.Milliseconds()).UTC() }
