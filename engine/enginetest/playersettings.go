package enginetest

import (
	"cmp"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// drawSettings makes settings from numbers. It leaves out those that cannot be compared if
// parts of a store enforce shares of limits, or if two clocks time deaths.
func (p *player) drawSettings(queue string, n []uint32) engine.Settings {
	s := engine.Settings{Defaults: engine.Terms{
		Priority: pick([]*uint32{nil, nil, new(uint32(3))}, n[0]), MaxAttempts: pick([]uint32{0, 0, 1, 2}, n[0]>>8),
		Backoff:     pick([][]time.Duration{nil, {5 * time.Second}, {time.Second, time.Minute}}, n[0]>>16),
		ExpireAfter: pick([]time.Duration{0, 0, 0, engine.Never, time.Minute}, n[1]),
		Remember:    pick([]time.Duration{0, 0, engine.Never, time.Minute, 3 * time.Hour}, n[1]>>8),
	}}
	if n[1]>>16%2 == 0 {
		s.Defaults.TTR = p.ttr(n[1] >> 17)
	}
	exact := p.clock != nil
	if !exact {
		s.Defaults.Backoff = pick([][]time.Duration{nil, {150 * time.Hour}}, n[0]>>16)
		s.Defaults.ExpireAfter = pick([]time.Duration{0, engine.Never, 1000 * time.Hour}, n[1])
		s.Defaults.Remember = pick([]time.Duration{0, engine.Never, 1000 * time.Hour}, n[1]>>8)
	}
	s.Defaults.Isolate = pick([]*bool{nil, nil, new(true), new(false)}, n[1]>>24)
	s.Defaults = p.b.able(s.Defaults)
	if exact && p.fault == nil {
		s.DeadKeep = pick([]time.Duration{0, 0, 10 * time.Second, 10 * time.Minute, 50 * time.Hour}, n[2])
	}
	if p.caps.History && p.caps.Failures && p.caps.Workers {
		s.History = pick([]time.Duration{0, engine.Never, 10 * time.Minute, 50 * time.Hour, 1000 * time.Hour}, n[4]>>8)
		if !exact && s.History > 0 {
			s.History = 1000 * time.Hour
		}
	}
	if p.caps.Shares {
		return s
	}
	if s.History > 0 {
		s.HistoryMax = pick([]int64{0, 0, 1, 5}, n[4]>>16)
	}
	s.MaxPending = pick([]int64{0, 0, 0, 4, 12}, n[2]>>8)
	s.InFlight = pick([]int64{0, 0, 0, 1, 3}, n[2]>>16)
	if exact {
		s.DeadMax = pick([]int64{0, 0, 1, 3}, n[2]>>24)
	}
	if exact && p.fault == nil && p.b.h.Losses == nil {
		was, rated := p.rated[queue]
		s.Rate, s.Burst = was.Rate, was.Burst // the contract leaves open how a change affects the leases gathered so far
		if !rated && n[3]%3 == 0 {
			s.Rate, s.Burst = pick([]float64{1, 2, 10}, n[3]>>2), pick([]int64{0, 1, 5}, n[3]>>8)
		}
	}
	return s
}

func (p *player) configure(queue string, n []uint32) {
	c, ok := p.e.(engine.Configurer)
	if !ok || !p.caps.Settings {
		return
	}
	if p.m.settings[queue].DeadKeep > 0 {
		p.touch(queue) // the new settings might keep dead messages that are not dropped yet
	}
	s := p.drawSettings(queue, n)
	of, modelOf := "", ""
	switch n[4] % 4 {
	case 1:
		of, modelOf = cmp.Or(p.older[queue], "x"), "stale"
	case 2, 3:
		if of = p.revision[queue]; of != "" {
			modelOf = p.m.settings[queue].revision()
		}
	}
	p.logf("configure %s at revision %q: %+v", queue, of, s)
	revision, err := c.Configure(p.caller, queue, s, of)
	_, wantErr := p.m.Configure(p.ctx, queue, s, modelOf)
	if p.agree("configure", err, wantErr) {
		if revision == "" || revision == p.revision[queue] {
			p.failf("configure: revision %q after %q", revision, p.revision[queue])
		}
		p.older[queue], p.revision[queue] = p.revision[queue], revision
		if s.Rate > 0 {
			p.rated[queue] = s
		}
	}
	if p.failed {
		p.older[queue], p.revision[queue] = "", "" // the call may have taken effect
	}
}

func (p *player) settings(queue string) {
	c, ok := p.e.(engine.Configurer)
	if !ok || !p.caps.Settings {
		return
	}
	p.logf("settings of %s", queue)
	got, revision, err := c.Settings(p.caller, queue)
	want, _, wantErr := p.m.Settings(p.ctx, queue)
	if !p.agree("settings", err, wantErr) {
		return
	}
	if problem := sameSettings(got, want); problem != "" || revision == "" {
		p.failf("%s, revision %q", problem, revision)
	}
	if known := p.revision[queue]; known != "" && revision != known {
		p.failf("settings are at revision %q, not %q", revision, known)
	}
	p.revision[queue] = revision
}

// touch makes the engine process the passage of time where limits count its results.
func (p *player) touch(queue string) {
	p.lease([]engine.Want{{Queue: queue, Max: 1, Remote: p.remote(1)}})
}

// passed touches the queues whose limits count deaths or expiries.
func (p *player) passed() {
	if p.tick(); p.problem != "" {
		return
	}
	for _, queue := range p.queues {
		if s := p.m.settings[queue]; s.DeadMax > 0 || s.MaxPending > 0 {
			p.touch(queue)
		}
	}
}

// refill fills buckets, as a reopened engine may.
func (p *player) refill() {
	if len(p.rated) > 0 && p.clock != nil {
		p.clock.Advance(10 * time.Second)
	}
	p.passed()
}

// unmet reports whether a purge may find expired messages before they are remembered.
func (p *player) unmet(queue string) bool {
	ghosts := p.ghosts(queue)
	for _, y := range p.m.memories {
		if ghosts[y.id] {
			return true
		}
	}
	return false
}
