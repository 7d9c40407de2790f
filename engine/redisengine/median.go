package redisengine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// median is the time that the nodes of a cluster agree on. They may disagree: then
// messages must not become due earlier or later for the node that their shard is on,
// so scripts on a node that is off follow the median of all.
type median struct {
	mu      sync.Mutex
	known   bool
	ahead   time.Duration // over this process's monotonic clock
	doubted atomic.Bool   // the nodes are being asked again
}

const (
	medianNodes    = 3                // with fewer there is no telling which is wrong
	medianInterval = 30 * time.Second // between readings of all clocks
	medianPatience = time.Second
	medianReadings = 3
	medianStep     = 100 * time.Millisecond // what no drift explains
	medianDrift    = 2 * time.Millisecond   // what clocks may drift between readings
)

// now returns what the nodes agree on, and false if too few have been asked.
func (m *median) now() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.UnixMicro((time.Since(start) + m.ahead).Microseconds()), m.known
}

// settle takes in what the nodes agree on, and reports whether the time has stepped.
func (m *median) settle(ahead time.Duration) (stepped bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stepped = m.known && (ahead-m.ahead).Abs() > medianStep
	if m.known && !stepped {
		// It is known to be at least so much; a later reading may just have been slower.
		ahead = max(ahead, m.ahead-medianDrift)
	}
	m.known, m.ahead = true, ahead
	return stepped
}

// offset is how much a node's clock is ahead of this process's monotonic one, at least:
// the best of a few readings.
func offset(ctx context.Context, node rueidis.Client) (ahead time.Duration, err error) {
	for n := range medianReadings {
		got, err := node.Do(ctx, node.B().Time().Build()).AsIntSlice()
		now := time.Now()
		switch {
		case err != nil:
			return 0, err
		case len(got) != 2:
			return 0, errAnswer
		}
		shown := time.Duration(got[0])*time.Second + time.Duration(got[1])*time.Microsecond
		if least := shown - now.Sub(start); n == 0 || least > ahead {
			ahead = least
		}
	}
	return ahead, nil
}

// agree reads the clocks of all nodes and settles on the median.
func (e *Engine) agree(ctx context.Context) {
	nodes := e.client.Nodes()
	if len(nodes) < medianNodes {
		return
	}
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, medianPatience)
	defer cancel()
	for _, node := range nodes {
		wg.Go(func() {
			if ahead, err := offset(ctx, node); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, ahead)
			}
		})
	}
	wg.Wait()
	if len(all) < medianNodes {
		return
	}
	slices.Sort(all)
	if e.median.settle(all[(len(all)-1)/2]) {
		e.missed()
	}
}

// keepAgreeing reads the clocks of all nodes again and again until Close.
func (e *Engine) keepAgreeing() {
	for e.ctx.Err() == nil {
		e.rest(medianInterval)
		e.agree(e.ctx)
	}
}

// astray reads the clocks of all nodes because one did not show what they agreed on:
// it may be that one, or this process may have been stopped for a while. Not more
// than once at a time.
func (e *Engine) astray() {
	if !e.median.doubted.CompareAndSwap(false, true) {
		return
	}
	e.tasks.Go(func() {
		e.agree(e.ctx)
		e.rest(medianPatience)
		e.median.doubted.Store(false)
	})
}
