package memengine

import (
	"context"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// settings are the configuration of a queue, and the state to enforce it.
type settings struct {
	engine.Settings
	revision uint64
	bucket   rules.Bucket
	dead     *ends // nil: they may all stay
}

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (s engine.Settings, revision string, err error) {
	revision = "0"
	err = e.call(ctx, "settings", name, false, func(q *queue) {
		revision = q.revision()
		if q.settings != nil {
			s = q.settings.Settings
			s.Defaults = s.Defaults.Clone()
		}
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
		if made = q.revision(); revision != "" && revision != made {
			stale = true
			return
		}
		q.configure(s)
		made = q.revision()
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

// revision returns the revision of the settings.
func (q *queue) revision() string {
	if q.settings == nil {
		return "0"
	}
	return strconv.FormatUint(q.settings.revision, 10)
}

func (q *queue) configure(s engine.Settings) {
	if q.settings == nil {
		q.settings = new(settings)
	}
	now := q.settings
	now.Settings = s
	now.revision++
	if s.Rate == 0 {
		now.bucket = rules.Bucket{} // full when a rate is set again
	}
	switch {
	case s.DeadKeep == 0 && s.DeadMax == 0:
		now.dead = nil
	case now.dead == nil:
		now.dead = &ends{state: engine.Dead}
		for _, bucket := range q.states[engine.Dead].buckets() {
			for m := range q.states[engine.Dead].messages(bucket) {
				q.addEnd(now.dead, m, q.states[engine.Dead].n)
			}
		}
	}
	q.trimHistory()
	q.hint = true
}

// defaults returns the default terms of a push.
func (q *queue) defaults() *engine.Terms {
	if q.settings == nil {
		return nil
	}
	return &q.settings.Defaults
}

// refusePending returns the error of a push to a queue with live messages; nil: there is
// room.
func (q *queue) refusePending(key string, live int) error {
	if s := q.settings; s != nil && s.MaxPending > 0 && int64(live) >= s.MaxPending {
		return engine.RefusePending(engine.Ref{Queue: q.name, Key: key}, s.MaxPending)
	}
	return nil
}

// live returns the number of live messages.
func (q *queue) live() int {
	return q.states[engine.Scheduled].n + q.states[engine.Ready].n + q.states[engine.Leased].n
}

// oldestDead returns the earliest death of messages that are kept.
func (q *queue) oldestDead() codec.Place {
	if q.settings == nil || q.settings.DeadKeep == 0 {
		return codec.WholeList.Low
	}
	return codec.Place{At: q.ms - rules.Millis(q.settings.DeadKeep)}
}

// stays reports whether a dead message is still kept.
func (q *queue) stays(m *message) bool { return m.listed().Compare(q.oldestDead()) >= 0 }

// dropDead drops some dead messages that exceed the settings, and reports whether there are
// more.
func (q *queue) dropDead() bool {
	s := q.settings
	if s == nil || s.dead == nil {
		return false
	}
	for range dropChunk {
		m := q.endsFirst(s.dead)
		if m == nil || q.stays(m) && (s.DeadMax == 0 || int64(q.states[engine.Dead].n) <= s.DeadMax) {
			return false
		}
		q.drop(m)
	}
	return true
}

func (s *settings) rate() rules.Rate { return rules.Rate{PerSecond: s.Rate, Burst: s.Bursts()} }

// full reports whether InFlight is reached.
func (q *queue) full() bool {
	return q.settings.InFlight > 0 && int64(q.states[engine.Leased].n) >= q.settings.InFlight
}

// grantable returns how many of n messages the settings allow to lease now.
func (q *queue) grantable(n int) int {
	s := q.settings
	if s == nil {
		return n
	}
	if s.InFlight > 0 {
		n = int(min(int64(n), max(0, s.InFlight-int64(q.states[engine.Leased].n))))
	}
	if s.Rate > 0 {
		n = min(n, s.bucket.Allows(q.now, s.rate()))
	}
	return n
}

// granted counts leases that grantable has allowed.
func (q *queue) granted(n int) {
	if s := q.settings; s != nil && s.Rate > 0 {
		s.bucket.Take(n, s.rate())
	}
}

// nextAllowed returns when the rate allows leases again, in Unix milliseconds. A time at or
// before now means at once.
func (q *queue) nextAllowed() int64 {
	s := q.settings
	if s.Rate == 0 {
		return q.ms
	}
	s.bucket.Allows(q.now, s.rate()) // updates it to now
	return ceil(s.bucket.Next(s.rate()))
}

// refuseClaim returns the error of a claim that the settings hold back, or nil.
func (q *queue) refuseClaim(ref engine.Ref) error {
	switch {
	case q.grantable(1) > 0:
		return nil
	case q.full():
		return engine.RefuseClaim(ref, time.Time{})
	}
	return engine.RefuseClaim(ref, rules.Instant(q.nextAllowed()))
}

// ceil returns t in milliseconds, rounded up.
func ceil(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
