package logengine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
)

// Queue tells what one queue holds.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	info := engine.QueueInfo{Queue: name}
	err := e.do(ctx, "queue", func(c *call) error {
		_, err := c.census(name, &info)
		return err
	})
	return info, err
}

// Queues tells it of the queues that hold something, are paused or have settings, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	if err := engine.CheckLimit("queues", "", limit); err != nil {
		return nil, "", err
	}
	err = e.do(ctx, "queues", func(c *call) error {
		e.mu.Lock()
		names := slices.Collect(maps.Keys(e.queues))
		e.mu.Unlock()
		slices.Sort(names)
		at, found := slices.BinarySearch(names, after)
		if found {
			at++
		}
		for _, name := range names[at:] {
			info := engine.QueueInfo{Queue: name}
			known, err := c.census(name, &info)
			if err != nil {
				return err
			}
			if !known {
				continue
			}
			if len(queues) == limit {
				next = queues[limit-1].Queue
				return nil
			}
			queues = append(queues, info)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return queues, next, nil
}

// census counts a queue, and reports whether there is anything to tell of it.
func (c *call) census(name string, info *engine.QueueInfo) (known bool, err error) {
	var t tally
	var oldest, next first
	err = c.tallied(name, &t, func(c *call) []int64 { return []int64{c.ms + 1} }, func(q *queue) error {
		known = q.live+q.dead+q.finished > 0 || q.pause != 0 || q.settings != nil && !q.settings.Unset()
		info.Leased, info.Dead, info.Finished = q.leased, q.dead, q.finished
		if info.Paused = q.pause != 0; info.Paused {
			info.PausedUntil = instant(q.pause)
		}
		info.Ready = t.upTo(c, q, 0) - q.leasedUpTo(t.times[0])
		info.Scheduled = q.live - q.leased - info.Ready
		if info.Ready > 0 {
			due, err := c.firstFrom(q, &oldest, recent.First)
			if err != nil {
				return err
			}
			info.OldestReady = instant(due)
		}
		if info.Scheduled > 0 {
			due, err := c.firstFrom(q, &next, recent.Position{At: t.times[0]})
			if err != nil {
				return err
			}
			info.NextDue = instant(due)
		}
		return nil
	})
	return known, err
}

// Forecast counts the scheduled and ready messages of a queue by due time. Those due before the
// present minute are in no bucket.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) ([]engine.Bucket, error) {
	if err := engine.CheckForecast(name, step, span); err != nil {
		return nil, err
	}
	buckets := make([]engine.Bucket, span/step)
	var first int64
	err := e.do(ctx, "forecast", func(c *call) error {
		const minute = 60_000
		var t tally
		times := func(c *call) []int64 {
			first = c.ms - (c.ms%minute+minute)%minute
			at := make([]int64, len(buckets)+1)
			for i := range at {
				at[i] = first + int64(i)*step.Milliseconds()
			}
			return at
		}
		done, last := 0, int64(0)
		err := c.tallied(name, &t, times, func(q *queue) error {
			if done == 0 {
				last = t.upTo(c, q, 0)
			}
			for n := 0; done < len(buckets); n++ {
				if n == stepItems {
					return errYield
				}
				now := t.upTo(c, q, done+1)
				buckets[done].Count = now - last
				last = now
				done++
			}
			for _, l := range q.leases {
				if i := (l.due - first) / step.Milliseconds(); l.known && !l.over && l.due >= first && i < int64(len(buckets)) {
					buckets[i].Count--
				}
			}
			return nil
		})
		if first == 0 {
			times(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range buckets {
		buckets[i].From = instant(first + int64(i)*step.Milliseconds())
		buckets[i].Count = max(0, buckets[i].Count)
	}
	return buckets, nil
}

// tally counts those of a queue who live by due time: in the runs up to places that were looked for
// without the lock.
type tally struct {
	set   *sources
	times []int64 // ascending
	parts []part
}

// part is the part of a queue in a run, and where each of the times is in it.
type part struct {
	src    *source
	from   uint32
	before []uint32
}

// tallied runs do on a queue that is there, with the places of some times.
func (c *call) tallied(name string, t *tally, times func(*call) []int64, do func(*queue) error) error {
	var num uint32
	for {
		err := c.step(func() error {
			q, err := c.visit(name, false)
			if err != nil || q == nil {
				return err
			}
			c.see(q)
			if t.set == nil && !c.e.anyRun(q) {
				t.set, t.times = c.e.runs, times(c)
			}
			if t.set != c.e.runs {
				t.set, t.times, num = c.e.runs, times(c), q.num
				return errSearch
			}
			return do(q)
		})
		if err != errSearch {
			return err
		}
		if err := c.apart(func() error { return t.search(num) }); err != nil {
			return err
		}
	}
}

// errSearch says that places in runs are to be looked for first.
var errSearch = errors.New("places in runs are to be found first")

// anyRun reports whether any run has messages of a queue that live.
func (e *Engine) anyRun(q *queue) bool {
	return slices.ContainsFunc(e.runs.of[recent.Live], func(src *source) bool {
		_, ok := src.Queue(q.num)
		return ok
	})
}

// search looks for the times in the runs.
func (t *tally) search(num uint32) error {
	t.parts = nil
	for _, src := range t.set.of[recent.Live] {
		q, ok := src.Queue(num)
		if !ok {
			continue
		}
		p := part{src: src, from: q.From, before: make([]uint32, len(t.times))}
		for i, at := range t.times {
			pos, err := src.Search(run.Place{Queue: num, At: at})
			if errors.Is(err, run.ErrDamaged) { // where it is in the block is not known
				pos, err = src.Behind(run.Place{Queue: num, At: at}), nil
			}
			if errors.Is(err, run.ErrClosed) {
				t.set = new(sources) // it was merged away: again
				return nil
			}
			if err != nil {
				return err
			}
			p.before[i] = min(max(pos, q.From), q.To)
		}
		t.parts = append(t.parts, p)
	}
	return nil
}

// upTo counts who is due before a time.
func (t *tally) upTo(c *call, q *queue, i int) int64 {
	n := c.e.recent.CountRange(q.num, recent.Live, recent.First, recent.Position{At: t.times[i]})
	for _, p := range t.parts {
		n += int64(p.src.Count(p.from, p.before[i]))
	}
	return n
}

// leasedUpTo is how many of those who are leased are due before a time: all, unless the clock
// stepped back.
func (q *queue) leasedUpTo(at int64) (n int64) {
	if q.latest < at {
		return q.leased
	}
	for _, l := range q.leases {
		if !l.over && (!l.known || l.due < at) {
			n++
		}
	}
	return n
}

// first looks for the first message of a queue that waits, from a position on.
type first struct {
	lane
	from   recent.Position
	walked recent.Position // of the recent ones, those before were looked at
	begun  bool
}

// firstFrom is when it is due; never: there is none.
func (c *call) firstFrom(q *queue, l *first, from recent.Position) (int64, error) {
	if !l.begun {
		l.from, l.walked, l.begun = from, from, true
		l.area = recent.Live
	}
	from = l.from
	l.refresh(c.e, q, from)
	at, steps := int64(never), 0
	c.e.recent.Ascend(q.num, recent.Live, l.walked, func(e recent.Entry) bool {
		if id := engine.ID(e.ID); q.held(id) || q.hides(recent.Live, id) {
			steps++
			l.walked = after(recent.Position{At: e.At, ID: e.ID})
			return steps < 4*stepItems
		}
		at = e.At
		return false
	})
	if steps == 4*stepItems { // as many are leased
		return 0, errYield
	}
	for {
		if err := l.heads(c, from, at); err != nil {
			return 0, err
		}
		again := false
		for _, k := range l.cursors {
			for len(k.loaded) > 0 && (!k.src.Alive(k.loaded[0].pos) || q.held(k.loaded[0].id) || q.hides(recent.Live, k.loaded[0].id)) {
				k.loaded = k.loaded[1:]
				again = true
			}
			if len(k.loaded) > 0 {
				at = min(at, k.loaded[0].due)
			}
		}
		if !again {
			return at, nil
		}
	}
}
