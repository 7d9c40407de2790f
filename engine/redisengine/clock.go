package redisengine

import (
	"context"
	"sync"
	"time"
)

// clock is a lower bound of a server's clock, so that no message counts as due too early.
// Every script answer carries the server's time, which was read before the answer arrived.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration // lower bound: the server's clock minus our monotonic one
	seen  time.Time     // time of the last reading; zero: nothing is known
	shown time.Duration // the latest time that now has returned
}

// start is the reference point of this process's monotonic clock.
var start = time.Now()

// observe records that the server's clock showed us, in microseconds, between sent and now. The
// bound rises, until a reading shows that it is too high: the clock was set back, or is slower.
func (c *clock) observe(us int64, sent, now time.Time) {
	showed := time.Duration(us) * time.Microsecond
	least, most := showed-now.Sub(start), showed-sent.Sub(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.IsZero() || most < c.ahead {
		c.ahead, c.shown = least, 0
	} else {
		c.ahead = max(c.ahead, least)
	}
	c.seen = now
}

// now returns the server's time, or false if it is unknown.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.IsZero() {
		return time.Time{}, false
	}
	c.shown = max(c.shown, time.Since(start)+c.ahead)
	return time.UnixMicro(c.shown.Microseconds()).UTC(), true
}

// sound reports whether now is reliable: the server's clock was read recently, and this
// machine was not suspended since.
func (c *clock) sound(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, wall := now.Sub(c.seen), now.Round(0).Sub(c.seen.Round(0))
	return mono < clockSound && (wall-mono).Abs() < clockSlip
}

const (
	clockSound = time.Minute
	clockSlip  = 100 * time.Millisecond // more than a clock slews in that time
)

// elapsed returns the time between two readings. The monotonic clock stops during a suspend;
// the wall clock can be set. The larger difference counts.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// now returns the time of the server clock that is furthest ahead. It asks a server only if
// the estimate is not reliable.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	if e.stopped != nil {
		return e.stopped().UTC(), nil
	}
	if e.clock.sound(time.Now()) {
		now, _ := e.clock.now()
		return now, nil
	}
	err := e.askTime(ctx)
	if now, ok := e.clock.now(); ok { // even an old estimate
		return now, nil
	}
	return time.Time{}, err
}

// heardClock records a reading of the clock of a shard's server.
func (e *Engine) heardClock(s *shard, us int64, sent time.Time) {
	now := time.Now()
	e.clock.observe(us, sent, now)
	s.clock.observe(us, sent, now)
}

// askTime asks all nodes for the time until one answers.
func (e *Engine) askTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience+e.slack)
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
				e.clock.observe(got[0]*1e6+got[1], sent, time.Now())
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

// timeArg returns the script's deadline by the server's clock, which leaves a quarter of the time
// for the answer. It is computed from a lower bound of that clock, so a script that runs is in
// time. Without a known clock the script is refused, and the refusal carries the server's time.
func (e *Engine) timeArg(r *request, until time.Time) string {
	c := r.clock
	if c == nil {
		c = e.clockFor(r.shard)
	}
	now, _ := c.now()
	arg := appendInt(nil, now.Add(time.Until(until)*3/4).UnixMicro())
	if e.stopped != nil && r.shard != nil {
		arg = appendInt(append(arg, '@'), e.stopped().UnixMicro())
	}
	return string(arg)
}

// clockFor returns the known clock of a shard's server, or else the engine's.
func (e *Engine) clockFor(s *shard) *clock {
	if s != nil && e.cluster() {
		if _, ok := s.clock.now(); ok {
			return &s.clock
		}
	}
	return &e.clock
}

// clockOf returns the time of a shard's server, or an estimate until that is known. It only
// decides whether a shard is worth asking.
func (e *Engine) clockOf(s *shard) time.Time {
	if e.stopped != nil {
		return e.stopped().UTC()
	}
	if now, ok := e.clockFor(s).now(); ok {
		return now
	}
	return time.Now()
}
