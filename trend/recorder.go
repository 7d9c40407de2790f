package trend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/names"
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

// Config configures a Recorder. The zero value and nil are valid.
type Config struct {
	// MaxQueues bounds the queues with a history of their own. Beyond it, queues that have been
	// idle for 15 minutes are dropped, the longest idle first, a tenth of all at a time. If there
	// are none, further queues are summed as "_other". Default 10,000.
	MaxQueues int

	// MaxBytes bounds the memory of slots. It does not include the fixed size of each queue;
	// see the package comment. Beyond it, queues that take more than their share drop their
	// oldest slots. Default 64 MiB.
	MaxBytes int64

	// Now is the clock of the slots. If it steps back by more than a minute, all slots are
	// dropped. Default time.Now.
	Now func() time.Time
}

// The defaults of a Config.
const (
	DefaultMaxQueues = 10_000
	DefaultMaxBytes  = 64 << 20
)

// Other is the sum of all queues beyond Config.MaxQueues, and of activity without a known
// queue.
const Other = "_other"

// minIdle is how long a queue must be idle before another may replace it.
const minIdle = 15 * time.Minute

// Recorder records activity. It is safe for concurrent use, has no goroutines and need not
// be closed. Make it with New.
type Recorder struct {
	now       func() time.Time
	maxQueues int
	budget    budget
	named     sync.Map // name → *history
	other     *history
	full      atomic.Int64 // number of the slot in which no queue could be dropped

	mu    sync.Mutex
	names names.Set // of the queues with a history; Queues adds Other
}

// New returns an empty Recorder.
func New(cfg *Config) *Recorder {
	c := *cmp.Or(cfg, new(Config))
	r := &Recorder{now: c.Now, maxQueues: cmp.Or(max(c.MaxQueues, 0), DefaultMaxQueues), other: &history{queue: Other}}
	if r.now == nil {
		r.now = time.Now
	}
	r.budget.maxBytes = cmp.Or(max(c.MaxBytes, 0), DefaultMaxBytes)
	return r
}

// slot is the number of the current finest slot.
func (r *Recorder) slot() int64 { return r.now().UnixMilli() / Resolution.Milliseconds() }

// of returns the history of a queue. A new one begins in slot n.
func (r *Recorder) of(queue string, n int64) *history {
	if h, ok := r.named.Load(queue); ok {
		return h.(*history)
	}
	if queue == "" || queue == Other || n == r.full.Load() {
		return r.other
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.named.Load(queue); ok {
		return h.(*history)
	}
	if int(r.budget.queues.Load()) >= r.maxQueues && !r.dropIdle(n) {
		r.full.Store(n)
		return r.other
	}
	h := &history{queue: strings.Clone(queue), at: n, last: n}
	r.named.Store(h.queue, h)
	r.names.Add(h.queue)
	r.budget.queues.Add(1)
	return h
}

// dropIdle drops the queues that have been idle longest, at most about a tenth of MaxQueues.
// It reports whether any was idle long enough.
func (r *Recorder) dropIdle(n int64) bool {
	type idleQueue struct {
		*history
		at int64
	}
	var all []idleQueue
	r.named.Range(func(_, v any) bool {
		h := v.(*history)
		h.mu.Lock()
		at := h.last
		h.mu.Unlock()
		if at <= n-int64(minIdle/Resolution) || at > n+back { // or the clock has stepped back
			all = append(all, idleQueue{h, at})
		}
		return true
	})
	slices.SortFunc(all, func(a, b idleQueue) int { return int(a.at - b.at) })
	all = all[:min(len(all), r.maxQueues/10+1)]
	for _, h := range all {
		r.named.Delete(h.queue)
		r.names.Remove(h.queue)
		h.mu.Lock()
		h.logs, h.gone = [len(levels)]journal{}, true
		r.budget.update(h.history)
		h.mu.Unlock()
		r.budget.queues.Add(-1)
	}
	return len(all) > 0
}

// Queues returns the names of at most limit queues after the given one, in order: those with
// recorded activity, including Other.
func (r *Recorder) Queues(after string, limit int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.other.events() > 0 {
		r.names.Add(Other)
	}
	return r.names.After(nil, after, limit)
}

// Activity returns a number that changes with each activity of a queue.
func (r *Recorder) Activity(queue string) uint64 {
	known, ok := r.named.Load(queue)
	if !ok {
		return 0
	}
	return known.(*history).events()
}

// events returns the number of events counted.
func (h *history) events() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.met
}

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
