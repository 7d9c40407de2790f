package redisengine

import (
	"context"
	"sync"
	"time"
)

// clock knows how late it is by a server's clock without asking: at least so late, so
// that nothing is taken for due before it is. Every answer of a script tells the time,
// which the server read before the answer came.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration // of the server's clock over this process's monotonic one, at least
	best  time.Duration // the same by the readings since
	since time.Time     // zero: nothing is known
	seen  time.Time     // when that was told last
	shown time.Duration // the latest time that now has returned
}

// start is from when this process's monotonic clock is counted.
var start = time.Now()

// clockAge is how long readings are gathered until the best of them counts. One that
// would put the clock back has mostly just taken longer to arrive.
const clockAge = 2 * time.Second

// told takes in that the clock showed us, in microseconds, at some time between sent
// and now.
func (c *clock) told(us int64, sent, now time.Time) {
	showed := time.Duration(us) * time.Microsecond
	least, most := showed-now.Sub(start), showed-sent.Sub(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = now
	switch {
	case c.since.IsZero() || most < c.ahead: // new, or stepped back
		c.ahead, c.best, c.since, c.shown = least, least, now, 0
	case now.Sub(c.since) > clockAge:
		c.ahead, c.best, c.since = max(c.best, least), least, now
	default:
		c.best = max(c.best, least)
		c.ahead = max(c.ahead, c.best)
	}
}

// now returns the server's time, and false if it is not known.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return time.Time{}, false
	}
	c.shown = max(c.shown, time.Since(start)+c.ahead)
	return time.UnixMicro(c.shown.Microseconds()).UTC(), true
}

// sound says whether now can be relied on: the server's clock was seen not long ago, and
// this machine has not been suspended since.
func (c *clock) sound(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, wall := now.Sub(c.seen), now.Round(0).Sub(c.seen.Round(0))
	return mono < clockSound && (wall-mono).Abs() < clockSlip
}

const (
	clockSound = time.Minute
	clockSlip  = 100 * time.Millisecond // what a clock is slewed by in that time, and more
)

// elapsed is the time between two readings of this machine's clocks. The monotonic one
// stands still while it is suspended, the other may be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// now returns the engine's time, that of whichever server is ahead, without asking one
// unless it has to.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	if e.stopped != nil {
		return e.stopped().UTC(), nil
	}
	if e.clock.sound(time.Now()) {
		now, _ := e.clock.now()
		return now, nil
	}
	err := e.askTime(ctx)
	if now, ok := e.clock.now(); ok { // if need be what is known from long ago
		return now, nil
	}
	return time.Time{}, err
}

// heardClock takes in what the clock of a shard's server showed since a question was sent.
func (e *Engine) heardClock(s *shard, us int64, sent time.Time) {
	now := time.Now()
	e.clock.told(us, sent, now)
	s.clock.told(us, sent, now)
}

// askTime asks all nodes for the time until one has told it.
func (e *Engine) askTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nodes := e.client.Nodes()
	ended := make(chan error, len(nodes))
	for _, node := range nodes {
		e.tasks.Go(func() {
			sent := time.Now()
			got, err := node.Do(ctx, node.B().Time().Build()).AsIntSlice()
			switch {
			case err != nil:
			case len(got) != 2:
				err = errAnswer
			default:
				e.clock.told(got[0]*1e6+got[1], sent, time.Now())
			}
			ended <- err
		})
	}
	err := error(errAnswer)
	for range nodes {
		select {
		case err = <-ended:
			if err == nil {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// timeArg is what a script is told of the time: when nobody waits for it any more, by the
// server's clock. What is known of that is the least it may show, so that a script which
// is carried out has been in time; where nothing is known the server objects, and tells.
func (e *Engine) timeArg(r *request, until time.Time) string {
	c := r.clock
	if c == nil {
		c = e.clockFor(r.shard)
	}
	now, _ := c.now()
	arg := appendInt(nil, now.Add(time.Until(until)).UnixMicro())
	if e.stopped != nil && r.shard != nil {
		arg = appendInt(append(arg, '@'), e.stopped().UnixMicro())
	}
	return string(arg)
}

// clockFor is the clock that is known of a shard's server, or the next best.
func (e *Engine) clockFor(s *shard) *clock {
	if s != nil && e.cluster() {
		if _, ok := s.clock.now(); ok {
			return &s.clock
		}
	}
	return &e.clock
}

// clockOf is how late it is by the clock of a shard's server, or by the next best as
// long as it has not been heard. It only tells whether a shard is worth asking.
func (e *Engine) clockOf(s *shard) time.Time {
	if e.stopped != nil {
		return e.stopped().UTC()
	}
	if now, ok := e.clockFor(s).now(); ok {
		return now
	}
	return time.Now()
}
