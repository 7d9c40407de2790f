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

// Fault is a failure below an engine during a call: a read or a write fails, or an answer is
// lost.
type Fault struct {
	Name string

	// Arm makes the n-th operation of its kind from now on fail, once; n is at least 1.
	// Disarm ends that and reports whether the operation failed.
	Arm    func(e engine.Engine, n int)
	Disarm func(e engine.Engine) (happened bool)

	// Most is the largest n worth trying; 0: 8.
	Most int

	// Caller, if not nil, returns the context of a call during which the fault may strike.
	// The context may end during the call.
	Caller func(e engine.Engine, ctx context.Context) context.Context

	// Harmless says that a call which fails because of the fault has changed nothing.
	// Otherwise the call may also have taken effect completely.
	Harmless bool

	// Anywhere says that the fault may strike in any call and chore, so that each message of
	// the call may have changed or not. The fault may end the engine later, which Reopen must
	// find out. Reopen is required.
	Anywhere bool

	// Reopen, if not nil, reopens the engine after a fault that ended it. Answered calls must
	// have lasted.
	Reopen func(t *testing.T, e engine.Engine) engine.Engine
}

// faultTests inject each of the harness's faults into random histories. A call that fails
// must return an error and leave the engine unchanged, or if the fault allows it, as after
// success. Everything else must follow the model.
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

// strikes reports whether the fault is tried in a step. Calls with many messages may fail
// halfway.
func (f *Fault) strikes(s step) bool {
	switch s.kind {
	case "time", "reopen", "purge", "redrive", "push many", "push atomic":
		return false
	}
	return s.fault%5 == 0
}

// suffer plays one step with a fault, and determines its outcome.
func (p *player) suffer(s step) {
	n := int(1 + s.fault>>8%p.fault.most())
	switch s.kind { // with one message each, so that it happened or not
	case "push":
		if p.caps.Keys && s.n[0]%5 == 0 {
			s.n[0]++ // so that the message can be found by its key
		}
	case "lease":
		s.n[1], s.n[3] = 0, 1
	case "settle":
		s.n[0] = 0
	}
	p.taken() // an unanswered message gets an id that no other has or had
	before, swept := p.m.clone(), maps.Clone(p.swept)
	p.logf("%s, time %d", p.fault.Name, n)
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

// taken makes the model give no known id to a new message.
func (p *player) taken() {
	for _, ids := range []iter.Seq[engine.ID]{slices.Values(p.ids), maps.Keys(p.m.ghosts), maps.Keys(p.swept)} {
		for id := range ids {
			p.m.lastID = max(p.m.lastID, id)
		}
	}
}

// outlive continues once calls no longer fail: background failures may affect a call that
// waits for the same thing.
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

// forgetLapsed ignores the tokens of lapsed messages, and leaves open whether these are still
// granted alone: an unanswered lease may have been given back.
func (p *player) forgetLapsed(m *Model) {
	for _, x := range m.msgs {
		if x.situation(p.now) == lapsed {
			x.unsure = true
			p.leases = slices.DeleteFunc(p.leases, func(l heldLease) bool { return l.id == x.ID })
		}
	}
}

// becomes continues with the model that agrees with everything the engine shows, or returns
// how each differs.
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

// identify gives the message of an unanswered push the id that the engine shows for its key.
func (p *player) identify(after, before *Model) *Model {
	for _, x := range after.msgs {
		if slices.ContainsFunc(before.msgs, func(y *modelMessage) bool { return y.ID == x.ID }) || x.Key == "" {
			continue
		}
		if i, err := p.e.Get(p.ctx, engine.Ref{Queue: x.Queue, Key: x.Key}); err == nil && p.queueOf[i.ID] == "" {
			for _, y := range after.msgs { // that id was of a message that the engine did not make, or has yet to identify
				if y.ID == i.ID {
					y.ID = x.ID
				}
			}
			x.ID = i.ID
			p.ids = append(p.ids, i.ID)
			p.queueOf[i.ID] = x.Queue
		}
	}
	for _, y := range after.past {
		if i, err := p.e.Get(p.ctx, engine.Ref{Queue: y.Queue, Key: y.Key}); err == nil && y.ID > before.lastID && i.State == engine.Finished && p.queueOf[i.ID] == "" {
			y.ID = i.ID
		}
	}
	for i, y := range after.memories { // a message that expired at once
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

// hear records an error that says that the engine failed.
func (p *player) hear(err error) {
	c := engine.Code(err)
	full := (p.armed || p.faultPending) && errors.Is(err, engine.ErrNoSpace) // the fault made the engine think that the disk is full
	if c == "unavailable" || c == "internal" || full {
		p.failed = true
	}
}

// clone returns an independent copy of the model.
func (m *Model) clone() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewModel(m.now)
	c.contents = m.copied()
	c.lastID, c.nextIDs = m.lastID, slices.Clone(m.nextIDs)
	return c
}
