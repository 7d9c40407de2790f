package trend

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config sets up a Recorder. The zero value, and a nil Config, work.
type Config struct {
	// MaxQueues bounds how many queues are kept apart. Of more the one that nothing has
	// happened to for longest is forgotten, if that is 15 minutes or more; else what happens
	// to queues beyond the bound sums up as the queue "_other". Default 10,000.
	MaxQueues int

	// MaxBytes bounds the memory of what has happened, without what each queue takes in any
	// case; see the package. Beyond it queues with much forget what lies furthest back.
	// Default 64 MiB.
	MaxBytes int64

	// Now is the time by which slots begin and end. When it steps back by more than a
	// minute, what has happened is forgotten. Default time.Now.
	Now func() time.Time
}

// The defaults of a Config.
const (
	DefaultMaxQueues = 10_000
	DefaultMaxBytes  = 64 << 20
)

// Other is the queue that all beyond Config.MaxQueues are summed up as, and those of which
// the engine cannot tell.
const Other = "_other"

// rests is for how long nothing has happened to a queue that may be forgotten for another.
const rests = 15 * time.Minute

// Recorder keeps what happened. It may be used by many goroutines, has none of its own and
// needs no end. Make it with New.
type Recorder struct {
	now    func() time.Time
	most   int
	budget budget
	named  sync.Map // name → *history
	other  *history
	more   atomic.Bool  // something happened to other
	full   atomic.Int64 // the number of the slot in which no queue can be forgotten

	mu     sync.Mutex
	sorted atomic.Pointer[[]string] // the names; nil: they have changed
}

// New returns a Recorder of nothing yet.
func New(cfg *Config) *Recorder {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.MaxQueues <= 0 {
		c.MaxQueues = DefaultMaxQueues
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &Recorder{now: c.Now, most: c.MaxQueues, other: &history{queue: Other}}
	r.budget.most = c.MaxBytes
	return r
}

// slot is the number of the finest slot that fills.
func (r *Recorder) slot() int64 { return r.now().UnixMilli() / Resolution.Milliseconds() }

// of returns the history of a queue, which begins in the slot of a number if it is new.
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
	if int(r.budget.queues.Load()) >= r.most && !r.forget(n) {
		r.full.Store(n)
		return r.other
	}
	h := &history{queue: strings.Clone(queue), at: n, last: n}
	r.named.Store(h.queue, h)
	r.budget.queues.Add(1)
	r.sorted.Store(nil)
	return h
}

// add notes that something happens to other.
func (r *Recorder) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.more.Store(true)
	r.sorted.Store(nil)
}

// forget forgets the tenth of all queues that have rested for longest, and reports whether
// there was one that has rested for long enough.
func (r *Recorder) forget(n int64) bool {
	type resting struct {
		*history
		at int64
	}
	var all []resting
	r.named.Range(func(_, v any) bool {
		h := v.(*history)
		h.mu.Lock()
		at := h.last
		h.mu.Unlock()
		if at <= n-int64(rests/Resolution) || at > n+back { // or the clock has stepped back since
			all = append(all, resting{h, at})
		}
		return true
	})
	slices.SortFunc(all, func(a, b resting) int { return int(a.at - b.at) })
	all = all[:min(len(all), r.most/10+1)]
	for _, h := range all {
		r.named.Delete(h.queue)
		h.mu.Lock()
		h.logs, h.gone = [len(levels)]journal{}, true
		r.budget.note(h.history)
		h.mu.Unlock()
		r.budget.queues.Add(-1)
	}
	if len(all) > 0 {
		r.sorted.Store(nil)
	}
	return len(all) > 0
}

// names are those of the queues that are kept apart, in their order.
func (r *Recorder) names() []string {
	if p := r.sorted.Load(); p != nil {
		return *p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]string, 0, r.budget.queues.Load())
	r.named.Range(func(name, _ any) bool {
		all = append(all, name.(string))
		return true
	})
	if r.more.Load() {
		all = append(all, Other)
	}
	slices.Sort(all)
	r.sorted.Store(&all)
	return all
}

// Queues returns the names of at most limit queues behind after, in their order: those to
// which something happened that is not forgotten yet, Other among them.
func (r *Recorder) Queues(after string, limit int) []string {
	all := r.names()
	i, found := slices.BinarySearch(all, after)
	if found {
		i++
	}
	return slices.Clone(all[i:min(len(all), i+max(limit, 0))])
}

// Activity is a number that moves when something happens to a queue.
func (r *Recorder) Activity(queue string) uint64 {
	known, ok := r.named.Load(queue)
	if !ok {
		return 0
	}
	h := known.(*history)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.met
}
