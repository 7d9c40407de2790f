package redisengine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// median is the time that the nodes of a cluster agree on. They may disagree: then
// messages must not become due earlier or later for the node that their shard is on,
// so scripts on a node that is off follow the median of all.
//
// Between readings it is this machine that counts on, and its clock may have stood
// still: a suspended machine notices nothing. So a node whose own clock shows something
// else does not follow, but objects, without having done anything; the clocks are then
// read anew, and only a reading of just now overrules it.
type median struct {
	mu     sync.Mutex
	known  bool
	ahead  time.Duration // over this process's monotonic clock
	read   time.Time     // when
	flight chan struct{} // the reading under way; closed with its end
}

const (
	medianNodes    = 3                // with fewer there is no telling which is wrong
	medianInterval = 30 * time.Second // between readings of all clocks
	medianAge      = time.Minute      // a reading is worth nothing after that
	medianPatience = time.Second
	medianReadings = 3
	medianStep     = 100 * time.Millisecond // what no drift explains
	medianDrift    = 2 * time.Millisecond   // what clocks may drift between readings

	objections = 3 // how often one call may be objected to
)

// now returns what the nodes agree on; false if too few have been asked lately.
func (m *median) now() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.UnixMicro((time.Since(start) + m.ahead).Microseconds()), m.known && time.Since(m.read) < medianAge
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
	m.known, m.ahead, m.read = true, ahead, time.Now()
	return stepped
}

// forget makes each node go by its own clock.
func (m *median) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = false
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

// agree reads the clocks of all nodes and settles on the median. It reports whether
// enough of them answered.
func (e *Engine) agree(ctx context.Context) bool {
	nodes := e.client.Nodes()
	if len(nodes) < medianNodes {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, medianPatience)
	defer cancel()
	offsets := make(chan time.Duration, len(nodes))
	ended := make(chan struct{}, len(nodes))
	for _, node := range nodes {
		e.tasks.Go(func() {
			if ahead, err := offset(ctx, node); err == nil {
				offsets <- ahead
			}
			ended <- struct{}{}
		})
	}
	for n := 0; n < len(nodes) && ctx.Err() == nil; n++ {
		select {
		case <-ended:
		case <-ctx.Done(): // one that is only being connected to knows no context
		}
	}
	all := make([]time.Duration, len(offsets))
	if len(all) < medianNodes {
		return false
	}
	for i := range all {
		all[i] = <-offsets
	}
	slices.Sort(all)
	if e.median.settle(all[(len(all)-1)/2]) {
		e.missed()
	}
	return true
}

// keepAgreeing reads the clocks of all nodes again and again until Close.
func (e *Engine) keepAgreeing() {
	for e.ctx.Err() == nil {
		e.rest(medianInterval)
		e.agree(e.ctx)
	}
}

// agreeAnew reads the clocks because a node did not show what they agreed on: it may be
// that node, or the clock that this process counts on by. All who ask at once wait for
// one reading. If too few nodes can be read, each goes by its own clock.
func (e *Engine) agreeAnew(ctx context.Context) {
	m := &e.median
	m.mu.Lock()
	flight := m.flight
	if flight == nil {
		flight = make(chan struct{})
		m.flight = flight
		e.tasks.Go(func() {
			if !e.agree(e.ctx) {
				m.forget()
			}
			m.mu.Lock()
			m.flight = nil
			m.mu.Unlock()
			close(flight)
		})
	}
	m.mu.Unlock()
	select {
	case <-flight:
	case <-ctx.Done():
	}
}
