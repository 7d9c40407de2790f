package enginetest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// slack is how many finished and dead messages an engine may still count although the model
// has dropped them.
type slack struct{ faded, culled int64 }

// slack returns what an engine may still count in a queue.
func (m *Model) slack(queue string) slack {
	met := m.met[queue]
	return slack{m.faded[queue] - met.faded, m.culled[queue] - met.culled}
}

// remote reports whether a lease is for another process. All are, except for one in four if
// the engine can crash: a crash ends leases of the process itself.
func (p *player) remote(n uint32) bool {
	return p.caps.RemoteLeases && (p.b.h.Crash == nil || n%4 > 0)
}

// restart changes a model to what a reopened engine holds: leases of the process itself have
// ended.
func (p *player) restart(m *Model) {
	for _, x := range m.msgs {
		if x.State == engine.Leased && !x.remote {
			if x.extended {
				got, err := p.stored(x)
				if x.remote = err == nil && got.State == engine.Leased; x.remote {
					continue
				}
			}
			p.lose(x)
			x.vague = true
			if p.now.Before(x.Deadline) {
				x.Deadline = instant(p.now.UnixMilli())
			}
			// It lapses once the engine has noticed it, and until then as of the opening.
			got, err := p.stored(x)
			at := got.Died
			if n := len(got.Failures); n > 0 {
				at = got.Failures[n-1].At
			}
			if err == nil && !at.Before(x.Deadline) && !at.After(p.now) {
				x.Deadline = at
			}
		}
	}
}

// stored returns what the engine shows of x, live or dead.
func (p *player) stored(x *modelMessage) (engine.Info, error) {
	i, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, ID: x.ID})
	if err == nil && i.State == engine.Finished {
		err = engine.ErrNotFound
	}
	return i, err
}

// lose invalidates the token of x. If there never was one, the validity of earlier tokens is
// open.
func (p *player) lose(x *modelMessage) {
	p.leases = slices.DeleteFunc(p.leases, func(l heldLease) bool { return l.id == x.ID })
	x.token = newToken(x.ID)
}

// back sets the clock back if that only makes ready messages wait again, even beside active
// leases. It must not do more, because the engine does not take back anything else that it
// has noticed by then.
func (p *player) back(d time.Duration) {
	if p.clock == nil {
		return
	}
	p.refresh()
	then := p.now.Add(-d)
	past := func(t time.Time) bool { return !t.IsZero() && t.After(then) }
	for _, x := range p.m.msgs {
		s := x.situation(p.now)
		over := s == lapsed || s == spent
		if over && past(x.Deadline) || (s == dead || s == spent) && p.m.settings[x.Queue].DeadKeep > 0 || past(x.Created) && x.ExpireAfter > 0 {
			return
		}
	}
	crashes := p.upsets() || p.b.h.Crash != nil
	for id, g := range p.m.ghosts {
		if !p.swept[id] || crashes && !g.expires.Before(then) { // a crash may undo that the engine noticed it
			return
		}
	}
	for _, queue := range p.queues {
		if p.m.slack(queue) != (slack{}) {
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

// crashed is restart for an engine that crashed. A lease of the process itself may never have
// happened, and neither may others unless leases last. The engine shows which, unless the key
// of the message has passed on. The engine may have to notice again what it noticed by
// itself.
func (p *player) crashed(m *Model) {
	p.restart(m)
	m.advance(p.now) // messages that died and were dropped have not expired
	lost := false
	lasting := p.b.h.Lasting != nil && p.b.h.Lasting(p.e)
	for _, x := range m.msgs {
		if x.State != engine.Leased || x.remote && lasting || m.passedOn(x, p.now) {
			continue
		}
		got, err := p.stored(x)
		switch {
		case errors.Is(err, engine.ErrNotFound) && !x.Expires.IsZero() && p.now.After(x.Expires):
			p.lose(x)
			x.wait() // and has expired
			lost = true
		case err != nil:
		case got.Attempt < x.Attempt:
			p.lose(x)
			x.wait()
			x.Attempt, x.Died, x.vague, x.unsure = got.Attempt, time.Time{}, true, true
			x.undo(got.Failures, p.now)
			lost = true
		}
	}
	for _, state := range []engine.State{engine.Leased, engine.Dead} {
		m.dropped = slices.DeleteFunc(m.dropped, func(x *modelMessage) bool {
			back := x.State == state && p.undropped(m, x, lost, lasting && x.remote)
			lost = lost || back
			return back
		})
	}
	slices.SortStableFunc(m.msgs, func(a, b *modelMessage) int { return cmp.Compare(a.ID, b.ID) })
	m.advance(p.now)
	p.reexpired(m)
	clear(m.met)
	clear(p.swept)
}

// reexpired adopts what the engine shows of the leases before an expiry: the crash may have
// lost them.
func (p *player) reexpired(m *Model) {
	for _, y := range m.past {
		got, err := p.e.Get(p.ctx, engine.Ref{Queue: y.Queue, ID: y.ID})
		if err == nil && got.Ending == engine.Expired && got.Attempt <= y.Attempt {
			y.Attempt, y.Failures, y.LastError = got.Attempt, got.Failures, got.LastError
		}
	}
}

// undo removes the last failures of x, lapses of lost leases, as far as that makes the others
// those that the engine shows. The last of those may be a lapse that it has noticed anew.
func (x *modelMessage) undo(shown []engine.Failure, now time.Time) {
	for all := x.Failures; ; all = all[:len(all)-1] {
		older := slices.Clip(all[:max(0, len(all)-engine.MaxFailures)])
		last := slices.Clone(all[len(older):])
		if n := len(last); n > 0 && n == len(shown) && last[n-1].Reason == engine.Lapsed {
			if at := shown[n-1].At; at.After(last[n-1].At) && !at.After(now) {
				last[n-1].At = at
			}
		}
		if slices.EqualFunc(last, shown, sameFailure) {
			x.Failures, x.LastError = append(older, last...), ""
			if n := len(x.Failures); n > 0 {
				x.LastError = x.Failures[n-1].Reason
			}
			return
		}
		if len(all) == 0 {
			return
		}
	}
}

// undropped restores a message that the settings of its queue had dropped, and reports
// whether it did. It does if the crash lost the lease whose end killed the message, unless
// that lease lasts, or lost the leases of messages that died later.
func (p *player) undropped(m *Model, x *modelMessage, lost, lasts bool) bool {
	y := *x
	got, err := p.stored(x)
	switch {
	case err == nil && got.State == engine.Dead:
		if !lost {
			return false
		}
	case x.State == engine.Dead || lasts:
		return false
	case err == nil:
		if got.Attempt >= x.Attempt {
			return false
		}
		y.wait()
		y.Attempt, y.Died, y.vague, y.unsure = got.Attempt, time.Time{}, true, true
		y.undo(got.Failures, p.now)
	case !errors.Is(err, engine.ErrNotFound) || x.Expires.IsZero() || !p.now.After(x.Expires):
		return false
	default: // it may have expired instead
		if x.Key != "" && x.Remember > 0 {
			if f, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, Key: x.Key}); err != nil || f.ID != x.ID {
				return false
			}
		}
		y.wait()
	}
	m.msgs = append(m.msgs, &y)
	return true
}
