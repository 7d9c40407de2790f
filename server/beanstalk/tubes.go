package beanstalk

import (
	"context"
	"slices"
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
)

// tube is a tube that some connection uses or watches, or that holds jobs.
type tube struct {
	name string

	jobs, deletes, pauses atomic.Uint64
	waiting               atomic.Int64

	// Guarded by tubes.mu.
	refs   [2]int // by using, watching
	at     int    // in tubes.order; negative: it is gone
	pause  time.Duration
	paused time.Time // until when
}

// The kinds of a reference.
const (
	using = iota
	watching
)

func (t *tube) referred() bool { return t.refs[using]+t.refs[watching] > 0 }

// hasCounters reports whether the tube has counters that would be lost if it were forgotten.
func (t *tube) hasCounters() bool { return t.jobs.Load()+t.deletes.Load()+t.pauses.Load() > 0 }

// tubes holds the known tubes. A tube vanishes, with its counters and its pause, when no connection
// refers to it and it is empty.
type tubes struct {
	c *tarry.Client

	mu    sync.Mutex
	all   map[string]*tube
	order []*tube // by creation; the last takes the place of one that vanishes
	refs  int
}

func (s *tubes) init(c *tarry.Client) {
	s.c, s.all = c, make(map[string]*tube)
	s.make(defaultTube).refs[using] = 1
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

// refer refers to a tube, which it may make; false: there are too many references. The default
// tube can always be referred to.
func (s *tubes) refer(name string, kind int) (*tube, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs >= mostRefs && name != defaultTube {
		return nil, false
	}
	t := s.make(name)
	t.refs[kind]++
	s.refs++
	return t, true
}

// leave ends a reference.
func (s *tubes) leave(ctx context.Context, t *tube, kind int) {
	s.mu.Lock()
	t.refs[kind]--
	s.refs--
	if !t.referred() && !t.hasCounters() {
		s.remove(t)
	}
	s.mu.Unlock()
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

// removeIfEmpty forgets a tube that is empty and that no connection refers to.
func (s *tubes) removeIfEmpty(ctx context.Context, t *tube) {
	s.mu.Lock()
	keep := t.referred() || t.at < 0
	s.mu.Unlock()
	if keep {
		return
	}
	q, err := s.c.Queue(ctx, t.name)
	if err != nil || holds(&q) {
		return
	}
	s.mu.Lock()
	gone := !t.referred() && t.at >= 0
	paused := gone && time.Now().Before(t.paused)
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
	found := t != nil && t.referred()
	s.mu.Unlock()
	if found {
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

// sync updates the list of tubes from the queues that hold jobs, and returns the names in order.
func (s *tubes) sync(queues []tarry.QueueInfo) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := make(map[string]bool, len(queues))
	for i := range queues {
		full[queues[i].Queue] = true
		s.make(queues[i].Queue)
	}
	for _, t := range slices.Clone(s.order) {
		if !t.referred() && !full[t.name] && !time.Now().Before(t.paused) {
			s.remove(t)
		}
	}
	return names(s.order)
}

// count returns the references to a tube.
func (s *tubes) count(t *tube) (users, watchers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.refs[using], t.refs[watching]
}

func names(tubes []*tube) []string {
	all := make([]string, len(tubes))
	for i, t := range tubes {
		all[i] = t.name
	}
	return all
}

// useTube carries out use.
func (c *conn) useTube(a args) {
	if string(a.tube) != c.use.name {
		t, ok := c.s.tubes.refer(string(a.tube), using)
		if !ok {
			c.say("OUT_OF_MEMORY")
			return
		}
		c.s.tubes.leave(c.ctx, c.use, using)
		c.use = t
	}
	c.say("USING ", c.use.name)
}

// watchTube carries out watch.
func (c *conn) watchTube(a args) {
	if c.watched(a.tube) < 0 {
		t, ok := (*tube)(nil), len(c.watch) < mostWatched
		if ok {
			t, ok = c.s.tubes.refer(string(a.tube), watching)
		}
		if !ok {
			c.say("OUT_OF_MEMORY")
			return
		}
		c.watch = append(c.watch, t)
		c.closeLeaser()
	}
	c.sayNumber("WATCHING ", uint64(len(c.watch)))
}

// ignoreTube carries out ignore. The last tube of the list takes the place of the ignored one.
func (c *conn) ignoreTube(a args) {
	if i := c.watched(a.tube); i >= 0 {
		if len(c.watch) == 1 {
			c.say("NOT_IGNORED")
			return
		}
		t := c.watch[i]
		last := len(c.watch) - 1
		c.watch[i] = c.watch[last]
		c.watch = slices.Delete(c.watch, last, last+1)
		c.closeLeaser()
		c.s.tubes.leave(c.ctx, t, watching)
	}
	c.sayNumber("WATCHING ", uint64(len(c.watch)))
}

// watched returns the place of a tube in the watch list; -1: it is not watched.
func (c *conn) watched(name []byte) int {
	return slices.IndexFunc(c.watch, func(t *tube) bool { return t.name == string(name) })
}

// closeLeaser closes the leaser: the watch list has changed.
func (c *conn) closeLeaser() {
	if c.leaser != nil {
		c.leaser.Close()
		c.leaser = nil
	}
}
