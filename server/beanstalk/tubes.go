package beanstalk

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

const (
	defaultTube = "default"
	mostWatched = 10_000
	mostRefs    = 1_000_000 // of all connections

	// pauseForGood is how long a pause without an end is said to be, in seconds.
	pauseForGood = math.MaxUint32
)

// tube is a tube that some connection uses or watches, or that holds jobs.
type tube struct {
	name string

	jobs, deletes, pauses atomic.Uint64
	waiting               atomic.Int64
	refs                  [2]atomic.Int64 // by using, watching; they grow under tubes.mu

	// Guarded by tubes.mu.
	at     int // in tubes.order; negative: it is gone
	pause  time.Duration
	paused time.Time // until when
}

// The kinds of a reference.
const (
	using = iota
	watching
)

func (t *tube) referred() bool { return t.refs[using].Load()+t.refs[watching].Load() > 0 }

// tubes holds the known tubes. A tube vanishes, with its counters and its pause, when no connection
// refers to it and it is empty.
type tubes struct {
	c    *tarry.Client
	refs atomic.Int64

	mu    sync.Mutex
	all   map[string]*tube
	order []*tube // by creation; the last takes the place of one that vanishes
}

func (s *tubes) init(c *tarry.Client) {
	s.c, s.all = c, make(map[string]*tube)
	s.make(defaultTube).refs[using].Add(1)
}

// make returns the tube of that name. Called with s.mu held, or before s is used.
func (s *tubes) make(name string) *tube {
	t := s.all[name]
	if t == nil {
		t = &tube{name: name, at: len(s.order)}
		s.all[name] = t
		s.order = append(s.order, t)
	}
	return t
}

// refer refers to a tube, which it may make. It fails when there are too many references, but
// never for the default tube.
func (s *tubes) refer(name string, kind int) (*tube, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs.Load() >= mostRefs && name != defaultTube {
		return nil, errNoMemory
	}
	t := s.make(name)
	t.refs[kind].Add(1)
	s.refs.Add(1)
	return t, nil
}

// leave ends a reference.
func (s *tubes) leave(ctx context.Context, t *tube, kind int) {
	t.refs[kind].Add(-1)
	s.refs.Add(-1)
	s.removeIfEmpty(ctx, t)
}

// remove forgets a tube. Called with s.mu held.
func (s *tubes) remove(t *tube) {
	end := len(s.order) - 1
	last := s.order[end]
	s.order[t.at], last.at = last, t.at
	s.order = slices.Delete(s.order, end, end+1)
	t.at = -1
	delete(s.all, t.name)
}

// removeIfEmpty forgets a tube that no connection refers to, unless it holds jobs.
func (s *tubes) removeIfEmpty(ctx context.Context, t *tube) {
	if t.referred() {
		return
	}
	q, err := s.c.Queue(ctx, t.name)
	if err == nil && holds(&q) {
		return
	}
	s.mu.Lock()
	gone := !t.referred() && t.at >= 0
	paused := gone && err == nil && time.Now().Before(t.paused)
	if gone {
		s.remove(t)
	}
	s.mu.Unlock()
	if paused {
		_ = s.c.Resume(ctx, t.name)
	}
}

// holds reports whether there are jobs in a queue.
func holds(q *tarry.QueueInfo) bool { return q.Scheduled+q.Ready+q.Leased+q.Dead > 0 }

// known returns the tube of a job.
func (s *tubes) known(name string) *tube {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.make(name)
}

// existing returns a tube that some connection refers to, or that holds jobs.
func (s *tubes) existing(ctx context.Context, name string) (*tube, error) {
	s.mu.Lock()
	t := s.all[name]
	s.mu.Unlock()
	if t != nil && t.referred() {
		return t, nil
	}
	q, err := s.c.Queue(ctx, name)
	if err == nil && !holds(&q) {
		err = engine.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return s.known(name), nil
}

// paused notes the pause of a tube.
func (s *tubes) paused(t *tube, d time.Duration, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.pause, t.paused = d, now.Add(d)
}

// pauseOf returns the present pause of a tube and what is left of it, in seconds. Another may
// have paused the queue.
func (s *tubes) pauseOf(t *tube, q *tarry.QueueInfo, now time.Time) (pause, left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !q.Paused:
		return 0, 0
	case q.PausedUntil.IsZero():
		return pauseForGood, pauseForGood
	}
	left = max(seconds(q.PausedUntil.Sub(now)-time.Millisecond), 0) // rounded up by the store
	if now.Before(t.paused) {
		return seconds(t.pause), left
	}
	return left, left
}

// list returns the names of all tubes in order, and the queues that hold jobs.
func (s *tubes) list(ctx context.Context) (all []string, full []tarry.QueueInfo, err error) {
	for q, err := range s.c.AllQueues(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if holds(&q) {
			full = append(full, q)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := make(map[*tube]bool, len(full))
	for i := range full {
		keep[s.make(full[i].Queue)] = true
	}
	for _, t := range slices.Clone(s.order) {
		if !t.referred() && !keep[t] && !time.Now().Before(t.paused) {
			s.remove(t)
		}
	}
	return names(s.order), full, nil
}

func names(tubes []*tube) []string {
	all := make([]string, len(tubes))
	for i, t := range tubes {
		all[i] = t.name
	}
	return all
}

// useTube carries out use.
func (c *conn) useTube(a args) (string, error) {
	if string(a.tube) != c.use.name {
		t, err := c.s.tubes.refer(string(a.tube), using)
		if err != nil {
			return "", err
		}
		c.s.tubes.leave(c.ctx, c.use, using)
		c.use = t
	}
	return c.tubeUsed(a)
}

// tubeUsed carries out list-tube-used.
func (c *conn) tubeUsed(args) (string, error) { return "USING " + c.use.name, nil }

// watchTube carries out watch.
func (c *conn) watchTube(a args) (string, error) {
	if c.watched(a.tube) < 0 {
		if len(c.watch) == mostWatched {
			return "", errNoMemory
		}
		t, err := c.s.tubes.refer(string(a.tube), watching)
		if err != nil {
			return "", err
		}
		c.watch = append(c.watch, t)
		c.closeLeaser()
	}
	return c.watching(), nil
}

// ignoreTube carries out ignore. The last tube of the list takes the place of the ignored one.
func (c *conn) ignoreTube(a args) (string, error) {
	if i := c.watched(a.tube); i >= 0 {
		last := len(c.watch) - 1
		if last == 0 {
			return "NOT_IGNORED", nil
		}
		t := c.watch[i]
		c.watch[i] = c.watch[last]
		c.watch = slices.Delete(c.watch, last, last+1)
		c.closeLeaser()
		c.s.tubes.leave(c.ctx, t, watching)
	}
	return c.watching(), nil
}

// watching returns the answer that says how many tubes are watched.
func (c *conn) watching() string { return "WATCHING " + strconv.Itoa(len(c.watch)) }

// watched returns the place of a tube in the watch list; -1: it is not watched.
func (c *conn) watched(name []byte) int {
	return slices.IndexFunc(c.watch, func(t *tube) bool { return t.name == string(name) })
}

// closeLeaser closes the leaser, if there is one.
func (c *conn) closeLeaser() {
	if c.leaser != nil {
		c.leaser.Close()
		c.leaser = nil
	}
}
