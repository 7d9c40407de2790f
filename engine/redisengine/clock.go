package redisengine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// clock knows how late it is by the servers' clock without asking: at least so late,
// so that nothing is taken for due before it is. Every answer of a script tells the
// time, which the server read before the answer came.
type clock struct {
	mu     sync.Mutex
	ahead  time.Duration // of the servers' clock over this process's monotonic one, at least
	read   time.Time     // when that was found; zero: never
	agreed bool          // it is what several nodes agree on, not what one says

	doubted atomic.Bool // the nodes are being asked again
}

// start is from when this process's monotonic clock is counted.
var start = time.Now()

// clockAge is how long a reading is believed over later ones that would put the clock
// back: these have mostly just taken longer to arrive.
const clockAge = 2 * time.Second

// told takes in that the clock showed us, in microseconds, at some time between sent
// and now.
func (c *clock) told(us int64, sent, now time.Time) {
	shown := time.Duration(us) * time.Microsecond
	least, most := shown-now.Sub(start), shown-sent.Sub(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agreed {
		return
	}
	if c.read.IsZero() || least >= c.ahead || most < c.ahead || now.Sub(c.read) > clockAge {
		c.ahead, c.read = least, now
	}
}

// now returns the servers' time, and false if it is not known.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return time.Time{}, false
	}
	since := time.Since(start) + c.ahead
	return time.UnixMicro(since.Microseconds()).UTC(), true
}

// A cluster's nodes may disagree about the time. Messages must not become due earlier
// or later for the node that their shard is on, so the engine goes by the median of
// all nodes, and scripts on a node that is off follow it.
const (
	agreeNodes    = 3                // with fewer there is no telling which is wrong
	agreeInterval = 30 * time.Second // between readings of all clocks
)

// agree reads the clocks of all nodes and settles on the median. With too few nodes
// it leaves the clock to what the scripts' answers tell.
func (e *Engine) agree(ctx context.Context) {
	nodes := e.client.Nodes()
	if e.stopped != nil || len(nodes) < agreeNodes {
		return
	}
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, node := range nodes {
		wg.Go(func() {
			got, err := node.Do(ctx, node.B().Time().Build()).AsIntSlice()
			now := time.Now()
			if err == nil && len(got) == 2 {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, time.Duration(got[0])*time.Second+time.Duration(got[1])*time.Microsecond-now.Sub(start))
			}
		})
	}
	wg.Wait()
	if len(all) < agreeNodes {
		return
	}
	slices.Sort(all)
	c := &e.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.read, c.agreed = all[(len(all)-1)/2], time.Now(), true
}

// clockArg is what scripts are told of the time: what the nodes agree on, or nothing.
func (e *Engine) clockArg() string {
	if e.stopped != nil {
		return "@" + string(appendInt(nil, e.stopped().UnixMicro()))
	}
	e.clock.mu.Lock()
	agreed := e.clock.agreed
	e.clock.mu.Unlock()
	if !agreed {
		return ""
	}
	now, _ := e.clock.now()
	return string(appendInt(nil, now.UnixMicro()))
}

// now returns the engine's time without asking a server, unless it has to.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	if e.stopped != nil {
		return e.stopped().UTC(), nil
	}
	if now, ok := e.clock.now(); ok {
		return now, nil
	}
	sent := time.Now()
	got, err := e.client.Do(ctx, e.client.B().Time().Build()).AsIntSlice()
	if err != nil {
		return time.Time{}, err
	}
	if len(got) == 2 {
		e.clock.told(got[0]*1e6+got[1], sent, time.Now())
	}
	now, _ := e.clock.now()
	return now, nil
}
