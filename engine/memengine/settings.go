package memengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (s engine.Settings, revision string, err error) {
	revision = rules.NoRevision
	err = e.call(ctx, "settings", name, false, func(q *queue) {
		s, revision = q.settings.Copy(), q.settings.Version()
	})
	return s, revision, err
}

// Configure stores the settings of a queue. When they first limit dead messages it goes
// through all of them, under the queue's lock.
func (e *Engine) Configure(ctx context.Context, name string, s engine.Settings, revision string) (string, error) {
	if err := e.calls.Enter(ctx, "configure"); err != nil {
		return "", err
	}
	defer e.calls.Leave()
	s.Defaults = s.Defaults.Clone()
	made, stale := "", false
	e.dropDead(name) // messages that the old settings dropped must not come back
	e.with(name, true, func(q *queue) {
		if made = q.settings.Version(); revision != "" && revision != made {
			stale = true
			return
		}
		q.configure(s)
		made = q.settings.Version()
	})
	if stale {
		return "", engine.RefuseRevision(name, made)
	}
	e.dropDead(name)
	return made, nil
}

// dropDead drops all dead messages that exceed the settings of a queue.
func (e *Engine) dropDead(name string) {
	more := true
	for more && e.with(name, false, func(q *queue) { more = q.dropDead() }) {
	}
}

func (q *queue) configure(s engine.Settings) {
	if q.settings == nil {
		q.settings = new(rules.Settings)
	}
	q.settings.Replace(s)
	switch {
	case s.DeadKeep == 0 && s.DeadMax == 0:
		q.deaths = nil
	case q.deaths == nil:
		q.deaths = &ends{state: engine.Dead}
		for _, bucket := range q.states[engine.Dead].buckets() {
			for m := range q.states[engine.Dead].messages(bucket) {
				q.addEnd(q.deaths, m, q.states[engine.Dead].n)
			}
		}
	}
	q.trimHistory()
	q.hint = true
}

// live returns the number of live messages.
func (q *queue) live() int64 {
	return int64(q.states[engine.Scheduled].n + q.states[engine.Ready].n + q.states[engine.Leased].n)
}

// oldestDead returns the earliest death of messages that are kept.
func (q *queue) oldestDead() codec.Place {
	return codec.Place{At: q.settings.DeadFrom(q.ms)}
}

// stays reports whether a dead message is still kept.
func (q *queue) stays(m *message) bool { return m.listed().Compare(q.oldestDead()) >= 0 }

// dropDead drops some dead messages that exceed the settings, and reports whether there are
// more.
func (q *queue) dropDead() bool {
	if q.deaths == nil {
		return false
	}
	s := q.settings
	for range dropChunk {
		m := q.endsFirst(q.deaths)
		if m == nil || q.stays(m) && (s.DeadMax == 0 || int64(q.states[engine.Dead].n) <= s.DeadMax) {
			return false
		}
		q.drop(m)
	}
	return true
}

// grantable returns how many of n messages the settings allow to lease now.
func (q *queue) grantable(n int) int {
	return q.settings.Grantable(q.now, n, q.leased())
}

// leased returns the number of leased messages.
func (q *queue) leased() int64 { return int64(q.states[engine.Leased].n) }
