package enginetest

import (
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// slack is how many finished and dead ones an engine may count that the model has
// dropped, as it did before it met them.
type slack struct{ faded, culled int64 }

// remote says whether a lease is passed on to another process: all are, but for one in
// four where the engine crashes, which ends those of the process itself.
func (p *player) remote(n uint32) bool {
	return p.caps.RemoteLeases && (p.b.h.Crash == nil || n%4 > 0)
}

// restart makes of a model what an engine holds that was opened again: leases of the
// process itself have ended.
func (p *player) restart(m *Model) {
	for _, x := range m.msgs {
		if x.State == engine.Leased && !x.remote {
			if x.extended {
				got, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, ID: x.ID})
				if x.remote = err == nil && got.State == engine.Leased; x.remote {
					continue
				}
			}
			p.lose(x)
			x.vague = true
			if p.now.Before(x.Deadline) {
				x.Deadline = instant(p.now.UnixMilli())
			}
			if x.situation(p.now) != spent {
				continue
			}
			// Its death is known from when it is met on, and until then made of the opening.
			got, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, ID: x.ID})
			if err == nil && !got.Died.Before(x.Deadline) && !got.Died.After(p.now) {
				x.Deadline = got.Died
			}
		}
	}
}

// lose has the token of x be worth nothing. What the tokens before it are worth, if it has
// never been, is left open.
func (p *player) lose(x *modelMessage) {
	p.leases = slices.DeleteFunc(p.leases, func(l heldLease) bool { return l.id == x.ID })
	x.token = newToken(x.ID)
}

// back sets the clock back, where that makes what was ready wait again and nothing else: what an
// engine has met of all else by then is not taken back.
func (p *player) back(d time.Duration) {
	if p.clock == nil {
		return
	}
	p.refresh()
	then := p.now.Add(-d)
	past := func(t time.Time) bool { return !t.IsZero() && t.After(then) }
	for _, x := range p.m.msgs {
		if x.State == engine.Leased || x.State == engine.Dead && p.m.settings[x.Queue].DeadKeep > 0 || past(x.Created) && x.ExpireAfter > 0 {
			return
		}
	}
	for id := range p.m.ghosts {
		if !p.swept[id] {
			return
		}
	}
	for _, queue := range p.queues {
		if p.m.faded[queue]+p.m.culled[queue] > 0 {
			return
		}
	}
	for _, until := range p.m.pauses {
		if past(until) && !until.Equal(forGood) {
			return
		}
	}
	if len(p.rated) > 0 || len(p.m.memories) > 0 || then.Before(p.base) {
		return
	}
	p.logf("the clock goes back by %v", d)
	p.clock.Advance(-d)
}

// crashed is restart for an engine that crashed. A lease of the process itself, and unless leases
// last any, may as well never have been, as the engine tells; and what it met without being asked to may have to be met again.
func (p *player) crashed(m *Model) {
	p.restart(m)
	lasting := p.b.h.Lasting != nil && p.b.h.Lasting(p.e)
	for _, x := range m.msgs {
		if x.State != engine.Leased || x.remote && lasting {
			continue
		}
		got, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, ID: x.ID})
		switch {
		case errors.Is(err, engine.ErrNotFound) && !x.Expires.IsZero() && p.now.After(x.Expires):
			p.lose(x)
			x.wait() // and passed its expiry
		case err != nil:
		case got.Attempt < x.Attempt:
			p.lose(x)
			x.wait()
			x.Attempt, x.vague = got.Attempt, true
		}
	}
	m.advance(p.now)
	for queue, s := range p.was {
		m.faded[queue] += s.faded
		m.culled[queue] += s.culled
	}
	clear(p.swept)
}
