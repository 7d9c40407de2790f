package enginetest

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// call plays one step, and keeps a copy of the model from before it.
func (p *player) call(s step) {
	if p.look(p.m); p.problem != "" {
		return
	}
	if s.kind == "chore" || !p.upsets() {
		if s.fault%3 == 0 {
			p.alone(s)
		} else {
			p.do(s)
		}
		p.turn()
		p.look(p.m)
		p.sound()
		return
	}
	p.taken() // an unanswered message gets an id that no other has or had
	p.before = p.m.clone()
	p.do(s)
	p.turn()
	if p.problem == "" {
		p.look(p.before, p.m)
		p.before = nil
	}
}

// turn runs the engine's background work if it has none of its own.
func (p *player) turn() {
	if p.b.h.Turn != nil && !p.inChore && p.problem == "" {
		p.b.h.Turn(p.e)
	}
}

// sound makes the engine check itself.
func (p *player) sound() {
	if p.b.h.Sound == nil || p.fault != nil || p.problem != "" {
		return
	}
	if err := p.b.h.Sound(p.e); err != nil {
		p.failf("the engine does not agree with itself: %v", err)
	}
}

// upsets reports whether the model before a call must be kept.
func (p *player) upsets() bool {
	return p.b.h.Losses != nil || p.fault != nil && p.fault.Anywhere
}

// shake plays one step during which a fault may end the engine, or in which an earlier fault
// may show.
func (p *player) shake(s step) {
	if s.kind == "reopen" && p.faultPending {
		s.kind = "crash" // closing it may fail
	}
	if !p.faultPending && s.fault%4 == 0 && s.kind != "reopen" && s.kind != "crash" {
		n := int(1 + s.fault>>8%p.fault.most())
		p.logf("%s, time %d", p.fault.Name, n)
		p.armed = true
		p.fault.Arm(p.e, n)
		if p.fault.Caller != nil {
			p.caller = p.fault.Caller(p.e, p.ctx)
		}
	}
	p.guard(func() { p.call(s) })
}

// guard runs something that a fault may fail, and determines its outcome.
func (p *player) guard(do func()) {
	p.failed = false
	do()
	if p.armed {
		p.armed, p.caller = false, p.ctx
		if p.fault.Disarm(p.e) {
			p.logf("(it happened)")
			p.faultPending = true
		}
	}
	if !p.faultPending || p.problem != "" && !p.failed {
		return
	}
	var known map[engine.ID]ghost
	if p.before != nil {
		known = maps.Clone(p.before.ghosts)
	}
	if p.reopenIfEnded(); !p.failed {
		return
	}
	failure, models := p.problem, []*Model{p.m}
	if p.before != nil {
		p.forgetLapsed(p.before)
		after := p.identify(p.m, p.before)
		models = []*Model{p.before, after, p.merged(p.before, after)}
		p.before = nil
	}
	problems := p.becomes(models)
	// The engine may end during the check, or may still have to retry what failed.
	for giveUp := time.Now().Add(patience); problems != "" && p.faultPending && time.Now().Before(giveUp); {
		if !p.failed {
			time.Sleep(2 * time.Millisecond)
		}
		p.failed = false
		p.reopenIfEnded()
		problems = p.becomes(models)
	}
	for id, g := range p.m.ghosts {
		if _, ok := known[id]; !ok && known != nil {
			g.due = forGood // nothing shows whether the expiry was before the call or after it
			p.m.ghosts[id] = g
		}
	}
	if problems != "" {
		p.failf("the call failed (%s) and left what is neither as before nor as after it:%s", failure, problems)
	}
	p.faultPending = p.faultPending && p.fault.Caller == nil // a caller that has left can have no later effect
}

// reopenIfEnded reopens the engine if the fault has ended it.
func (p *player) reopenIfEnded() {
	was := p.e
	if p.e = p.fault.Reopen(p.b.T, was); p.e == was {
		return
	}
	p.logf("(opened again)")
	p.faultPending = false
	for _, m := range []*Model{p.m, p.before} {
		if m != nil {
			p.crashed(m)
		}
	}
}

func (f *Fault) most() uint32 {
	if f.Most == 0 {
		return 8
	}
	return uint32(f.Most)
}

// merged returns the model for a call that changes several messages. Each of its messages is
// as before the call or as after it, whichever the engine shows.
func (p *player) merged(before, after *Model) *Model {
	m := before.clone()
	m.advance(p.now)
	after.advance(p.now)
	at := func(m *Model, id engine.ID) *modelMessage {
		for _, x := range m.msgs {
			if x.ID == id {
				return x
			}
		}
		return nil
	}
	for _, x := range slices.Concat(before.msgs, after.msgs) {
		was, is := at(m, x.ID), at(after, x.ID)
		got, err := p.stored(x)
		gone := errors.Is(err, engine.ErrNotFound)
		switch {
		case is == nil && gone && was != nil:
			m.remove(was)
		case is != nil && err == nil && p.shows(got, is):
			if was != nil {
				m.remove(was)
			}
			taken := *is
			m.msgs = append(m.msgs, &taken)
			delete(m.ghosts, x.ID) // it has not expired: that would need its lease to be lost
			m.expired[x.Queue] = slices.DeleteFunc(m.expired[x.Queue], func(id engine.ID) bool { return id == x.ID })
		}
	}
	m.mergePast(after)
	for id, g := range after.ghosts {
		if at(m, id) == nil {
			m.ghosts[id] = g
		}
	}
	slices.SortStableFunc(m.msgs, func(a, b *modelMessage) int { return int(int64(a.ID) - int64(b.ID)) })
	for _, y := range slices.Concat(before.memories, after.memories) {
		got, err := p.e.Get(p.ctx, engine.Ref{Queue: y.queue, Key: y.key})
		finished := err == nil && got.State == engine.Finished && !got.Forgotten.IsZero()
		was, is := m.remembered(y.queue, y.key), after.remembered(y.queue, y.key)
		if was != nil && (!finished || got.ID != was.id) {
			m.forget(y.queue, y.key)
		}
		if is != nil && finished && got.ID == is.id && (was == nil || was.id != is.id) {
			m.memories = append(m.memories, is)
		}
	}
	return m
}

// shows reports whether got agrees with a message of the model.
func (p *player) shows(got engine.Info, x *modelMessage) bool {
	want := x.info(p.now)
	p.allow(got, &want, x)
	return sameInfo(got, want) == ""
}

// mergePast leaves open what a call has added to the history of after and removed from it.
func (m *Model) mergePast(after *Model) {
	has := func(all []*past, id engine.ID) bool {
		return slices.ContainsFunc(all, func(y *past) bool { return y.ID == id })
	}
	for _, y := range m.past {
		y.gone = y.gone || !has(after.past, y.ID)
	}
	for _, y := range after.past {
		if !has(m.past, y.ID) {
			added := *y
			added.unmet = true
			m.past = append(m.past, &added)
		}
	}
}
