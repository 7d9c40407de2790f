package enginetest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// configured is a queue's settings, and how often they were written.
type configured struct {
	engine.Settings
	writes int
}

func (c configured) revision() string { return strconv.Itoa(c.writes) }

// Settings returns the settings of a queue.
func (m *Model) Settings(ctx context.Context, queue string) (engine.Settings, string, error) {
	if _, err := m.begin(ctx, "settings"); err != nil {
		return engine.Settings{}, "", err
	}
	defer m.mu.Unlock()
	c := m.settings[queue]
	s := c.Settings
	s.Defaults = s.Defaults.Clone()
	return s, c.revision(), nil
}

// Configure stores the settings of a queue.
func (m *Model) Configure(ctx context.Context, queue string, s engine.Settings, revision string) (string, error) {
	if _, err := m.begin(ctx, "configure"); err != nil {
		return "", err
	}
	defer m.mu.Unlock()
	c := m.settings[queue]
	if revision != "" && revision != c.revision() {
		return "", engine.RefuseRevision(queue, c.revision())
	}
	s.Defaults = s.Defaults.Clone()
	c = configured{s, c.writes + 1}
	m.settings[queue] = c
	if s.Rate == 0 {
		delete(m.buckets, queue)
	}
	m.hint(queue) // messages held back before may be leased
	return c.revision(), nil
}

// cull drops dead messages that a queue no longer keeps.
func (m *Model) cull(now time.Time) {
	for _, queue := range slices.Sorted(maps.Keys(m.settings)) {
		s := m.settings[queue]
		if s.DeadKeep == 0 && s.DeadMax == 0 {
			continue
		}
		all := m.in(queue, engine.Dead, now)
		for i, x := range all {
			old := s.DeadKeep > 0 && x.Died.Add(s.DeadKeep).Before(now)
			many := s.DeadMax > 0 && int64(len(all)-i) > s.DeadMax
			if old || many {
				y := m.find(engine.Ref{Queue: queue, ID: x.ID}, now)
				m.remove(y)
				m.dropped = append(m.dropped, y)
				m.culled[queue]++
			}
		}
	}
}

// pending counts the live messages of a queue.
func (m *Model) pending(queue string, now time.Time) int64 {
	return int64(len(m.in(queue, engine.Scheduled, now)) + len(m.in(queue, engine.Ready, now)) + len(m.in(queue, engine.Leased, now)))
}

// anyNumber is more than any call leases.
const anyNumber = 1 << 30

// places returns how many more messages of a queue its in_flight allows.
func (m *Model) places(queue string, now time.Time) int {
	if most := m.settings[queue].InFlight; most > 0 {
		return int(max(0, most-int64(len(m.in(queue, engine.Leased, now)))))
	}
	return anyNumber
}

// tokens returns how many messages a queue's rate allows after just leases, and when it
// allows more, if there is a rate.
func (m *Model) tokens(queue string, just int, now time.Time) (n int, next time.Time) {
	s := m.settings[queue]
	if s.Rate == 0 {
		return anyNumber, time.Time{}
	}
	r := rules.Rate{PerSecond: s.Rate, Burst: s.Bursts()}
	b := m.buckets[queue]
	n = b.Allows(now, r) - just
	b.Take(just, r)
	m.buckets[queue] = b
	return n, b.Next(r)
}

// held returns the error of a claim that settings hold back, else nil.
func (m *Model) held(ref engine.Ref, now time.Time) error {
	if m.places(ref.Queue, now) == 0 {
		return engine.RefuseClaim(ref, time.Time{})
	}
	if n, next := m.tokens(ref.Queue, 0, now); n == 0 {
		return engine.RefuseClaim(ref, next)
	}
	return nil
}

// knownQueues returns the names that Queues may list.
func (m *Model) knownQueues(now time.Time) []string {
	var names []string
	for _, x := range m.msgs {
		names = append(names, x.Queue)
	}
	for _, y := range m.memories {
		names = append(names, y.queue)
	}
	for _, y := range m.past {
		if len(m.history(y.Queue, now)) > 0 {
			names = append(names, y.Queue)
		}
	}
	for queue := range m.pauses {
		if _, ok := m.paused(queue, now); ok {
			names = append(names, queue)
		}
	}
	for queue, s := range m.settings {
		if !s.Unset() {
			names = append(names, queue)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
