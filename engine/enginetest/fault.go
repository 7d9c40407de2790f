package enginetest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Fault is something that goes wrong beneath an engine while a call runs: a read
// that fails, a write, an answer that is lost on its way.
type Fault struct {
	Name string

	// Arm lets the n-th operation of its kind from now on go wrong, once; n is at
	// least 1. Disarm ends that and tells whether it went wrong.
	Arm    func(e engine.Engine, n int)
	Disarm func(e engine.Engine) (happened bool)

	// Most is the largest n worth trying; 0: 8.
	Most int

	// Caller, if not nil, is the context in which a call is made while the fault may strike: it may
	// end in the midst of the call.
	Caller func(e engine.Engine, ctx context.Context) context.Context

	// Harmless says that a call which fails by it has changed nothing. Otherwise
	// it may as well have happened, whole.
	Harmless bool

	// Anywhere says that it may strike in any call and chore, each of whose messages may
	// then have been changed or not, and that it may end the engine later on, which Reopen,
	// required, is to find out.
	Anywhere bool

	// Reopen, if not nil, opens the engine again after it has happened: it ended the
	// engine, and what was answered must be there.
	Reopen func(t *testing.T, e engine.Engine) engine.Engine
}

// faultTests let each of the harness's faults happen in random histories. A call
// that fails must say so, and leave the engine as it was before, or where the fault
// allows that, as it would be had the call succeeded; all else must go on as the
// model says.
var faultTests = []test{{"histories in which something goes wrong agree with the model", func(b *bed) {
	b.need("to fail", len(b.h.Faults) > 0)
	for _, f := range b.h.Faults {
		b.Run(f.Name, func(t *testing.T) {
			inner := *b
			inner.T = t
			inner.histories(&f)
		})
	}
}}}

// strikes reports whether the fault is tried in a step. Those of many messages may
// fail halfway.
func (f *Fault) strikes(s step) bool {
	switch s.kind {
	case "time", "reopen", "purge", "redrive", "push many", "push atomic":
		return false
	}
	return s.fault%5 == 0
}

// suffer plays one step in which something may go wrong, and finds out what became
// of it.
func (p *player) suffer(s step) {
	n := int(1 + s.fault>>8%p.fault.most())
	switch s.kind { // one message each: it happened or not
	case "push":
		if p.caps.Keys && s.n[0]%5 == 0 {
			s.n[0]++ // found again by its key
		}
	case "lease":
		s.n[1], s.n[3] = 0, 1
	case "settle":
		s.n[0] = 0
	}
	p.taken() // what nobody is told the id of gets one that no other has or had
	before, swept := p.m.clone(), maps.Clone(p.swept)
	p.logf("%s, the %d. time", p.fault.Name, n)
	p.failed = false
	p.fault.Arm(p.e, n)
	p.do(s)
	if !p.fault.Disarm(p.e) {
		return
	}
	p.logf("(it happened)")
	if p.fault.Reopen != nil {
		p.e = p.fault.Reopen(p.b.T, p.e)
	}
	if p.problem == "" && p.fault.Reopen == nil {
		p.outlive()
		return
	}
	if p.problem == "" || !p.failed {
		return
	}
	p.swept = swept
	failure, outcomes := p.problem, []*Model{before}
	if !p.fault.Harmless {
		outcomes = append(outcomes, p.identify(p.m, before))
	}
	problems := p.becomes(outcomes)
	if problems != "" {
		p.failf("the call failed (%s) and left what is neither as before nor as after it:%s", failure, problems)
	}
}

// taken has the model give no id that is known.
func (p *player) taken() {
	for _, ids := range []iter.Seq[engine.ID]{slices.Values(p.ids), maps.Keys(p.m.ghosts), maps.Keys(p.swept)} {
		for id := range ids {
			p.m.lastID = max(p.m.lastID, id)
		}
	}
}

// outlive goes on when no call fails any more: what goes wrong in the background may
// meet a call that waits for the same.
func (p *player) outlive() {
	for giveUp := time.Now().Add(patience); ; {
		p.failed = false
		problem := p.becomes([]*Model{p.m})
		switch {
		case problem == "":
			return
		case !p.failed || time.Now().After(giveUp):
			p.failf("something went wrong in the background, and then:%s", problem)
			return
		}
	}
}

// forgetLapsed leaves alone the tokens of messages that had lapsed: a lease without an
// answer may have ended them, though it has come back.
func (p *player) forgetLapsed(m *Model) {
	p.leases = slices.DeleteFunc(p.leases, func(l heldLease) bool {
		return slices.ContainsFunc(m.msgs, func(x *modelMessage) bool { return x.ID == l.id && x.situation(p.now) == lapsed })
	})
}

// becomes goes on with the model that agrees with all the engine shows, or tells in
// what each differs.
func (p *player) becomes(models []*Model) (problems string) {
	log := len(p.log)
	for _, m := range models {
		p.m, p.problem = m, ""
		p.compareAll()
		p.log = p.log[:log]
		if p.problem == "" {
			return ""
		}
		problems += "\n  " + p.problem
	}
	p.problem = ""
	return problems
}

// identify gives the message that a push without an answer may have made the id
// that the engine shows for its key.
func (p *player) identify(after, before *Model) *Model {
	for _, x := range after.msgs {
		if slices.ContainsFunc(before.msgs, func(y *modelMessage) bool { return y.ID == x.ID }) || x.Key == "" {
			continue
		}
		if i, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, Key: x.Key}); err == nil && p.queueOf[i.ID] == "" {
			for _, y := range after.msgs { // one that the engine has not made, or whose own is still to come
				if y.ID == i.ID {
					y.ID = x.ID
				}
			}
			x.ID = i.ID
			p.ids = append(p.ids, i.ID)
			p.queueOf[i.ID] = x.Queue
		}
	}
	for i, y := range after.memories { // one that expired at once
		if slices.Contains(before.memories, y) {
			continue
		}
		if f, err := p.e.Get(p.ctx, engine.Ref{Queue: y.queue, Key: y.key}); err == nil && p.queueOf[f.ID] == "" {
			known := *y
			known.id = f.ID
			after.memories[i] = &known
			if g, ok := after.ghosts[y.id]; ok {
				delete(after.ghosts, y.id)
				after.ghosts[f.ID] = g
			}
			p.queueOf[f.ID] = y.queue
		}
	}
	return after
}

// hear notes an error that is no answer.
func (p *player) hear(err error) {
	c := engine.Code(err)
	full := (p.armed || p.shaken) && errors.Is(err, engine.ErrNoSpace) // by what it met, it takes the disk to be full
	if c == "unavailable" || c == "internal" || full {
		p.failed = true
	}
}

// clone returns a model that goes its own way from here.
func (m *Model) clone() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewModel(m.now)
	c.contents = m.copied()
	c.lastID, c.nextIDs = m.lastID, slices.Clone(m.nextIDs)
	return c
}
