package enginetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// frail is a model that can fail, and err.
type frail struct {
	*Model
	*frailty
}

// frailty is what the models of a harness fail and err by, one after another.
type frailty struct {
	left  int  // until a call fails; 0: none does
	after bool // it fails when it has been carried out
	ended bool // all fail
	calls int

	found func(m *Model)           // what a crash makes of a model
	fails func(m *Model)           // what a call that fails makes of it
	errs  func(m *Model, call int) // what a call makes of it besides

	refuses func(m *Model, queue string, room int64) bool // a push, by max_pending, where there is room
	halves  bool                                          // an atomic push may keep some
}

// model is an engine that fails and errs so.
func (f *frailty) model(m *Model) frail {
	if f.refuses != nil {
		m.refused = func(_ int, queue string, room int64) bool { return f.refuses(m, queue, room) }
	}
	return frail{m, f}
}

// call carries out a call, or fails.
func (f frail) call(do func()) error {
	failed := &engine.Error{Op: "call", Err: engine.ErrUnavailable}
	if f.ended {
		return failed
	}
	f.calls++
	if f.left > 0 {
		if f.left--; f.left == 0 {
			if f.ended = true; f.after {
				do()
			}
			if f.fails != nil {
				f.fails(f.Model)
			}
			return failed
		}
	}
	do()
	if f.errs != nil {
		f.errs(f.Model, f.calls)
	}
	return nil
}

func (f frail) Push(ctx context.Context, msgs []engine.Message) (r []engine.PushResult, err error) {
	if failed := f.call(func() { r, err = f.Model.Push(ctx, msgs) }); failed != nil {
		return nil, failed
	}
	return r, err
}

func (f frail) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if f.halves {
		return f.Push(ctx, msgs)
	}
	return f.Model.PushAtomic(ctx, msgs)
}

func (f frail) Lease(ctx context.Context, wants []engine.Want) (g engine.Grant, err error) {
	if failed := f.call(func() { g, err = f.Model.Lease(ctx, wants) }); failed != nil {
		return engine.Grant{}, failed
	}
	return g, err
}

func (f frail) Settle(ctx context.Context, s []engine.Settlement) (r []engine.Settled, err error) {
	if failed := f.call(func() { r, err = f.Model.Settle(ctx, s) }); failed != nil {
		return nil, failed
	}
	return r, err
}

func (f frail) Cancel(ctx context.Context, refs []engine.Ref) (errs []error, err error) {
	if failed := f.call(func() { errs, err = f.Model.Cancel(ctx, refs) }); failed != nil {
		return nil, failed
	}
	return errs, err
}

func (f frail) Purge(ctx context.Context, queue string, also engine.PurgeAlso) (n int64, err error) {
	if failed := f.call(func() { n, err = f.Model.Purge(ctx, queue, also) }); failed != nil {
		return 0, failed
	}
	return n, err
}

func (f frail) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (r engine.Redriven, err error) {
	if failed := f.call(func() { r, err = f.Model.Redrive(ctx, queue, ids, limit) }); failed != nil {
		return engine.Redriven{}, failed
	}
	return r, err
}

func frailHarness(f *frailty) Harness {
	clock := NewClock()
	again := func(crash bool) func(*testing.T, engine.Engine) engine.Engine {
		return func(_ *testing.T, e engine.Engine) engine.Engine {
			m := e.(frail).Model
			if crash && f.found != nil {
				f.found(m)
			}
			f.ended = false
			return f.model(m.reopened())
		}
	}
	fault := func(name string, after bool) Fault {
		return Fault{
			Name: name, Anywhere: true, Most: 3,
			Arm:    func(_ engine.Engine, n int) { f.left, f.after = n, after },
			Disarm: func(engine.Engine) bool { f.left = 0; return f.ended },
			Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
				if !f.ended {
					return e
				}
				return again(true)(t, e)
			},
		}
	}
	return Harness{
		Clock: clock,
		Open: func(*testing.T) engine.Engine {
			*f = frailty{found: f.found, fails: f.fails, errs: f.errs, refuses: f.refuses, halves: f.halves}
			return f.model(NewModel(clock.Now))
		},
		Reopen: again(false), Crash: again(true), Lasting: func(engine.Engine) bool { return true },
		Faults: []Fault{fault("it ends before a call", false), fault("it ends after a call", true)},
		Chores: []Chore{{Name: "nothing", Do: func(engine.Engine) error { return nil }}},
		Meanwhile: func(_ engine.Engine, _ string, do func() error, fn func(string)) error {
			for range 5 {
				fn("nowhere")
			}
			return do()
		},
		Losses: func(e engine.Engine) []func(*testing.T) engine.Engine {
			if f.calls%40 > 0 {
				return nil
			}
			m := e.(frail).clone()
			if f.found != nil {
				f.found(m)
			}
			return []func(*testing.T) engine.Engine{func(*testing.T) engine.Engine { return (&frailty{refuses: f.refuses}).model(m.reopened()) }}
		},
		Keys: 6, Steps: 150,
	}
}

// frailPlayer returns a player on a frail model, and the first of its queues.
func frailPlayer(t *testing.T, f *frailty) (b *bed, p *player, queue string) {
	t.Helper()
	b = newBed(t, frailHarness(f))
	p = newPlayer(b, b.h.Clock.Now())
	return b, p, p.queues[0]
}

// both configures the first queue of the engine and of the model.
func (p *player) both(s engine.Settings) {
	p.b.Helper()
	for _, e := range []engine.Configurer{p.e.(engine.Configurer), p.m} {
		if _, err := e.Configure(p.ctx, p.queues[0], s, ""); err != nil {
			p.b.Fatal(err)
		}
	}
}

// loseLeases makes of a model what a crash leaves that loses all leases, and the deaths they led to.
func loseLeases(m *Model) {
	for _, x := range slices.Concat(m.msgs, m.dropped) {
		if x.State != engine.Leased || m.passedOn(x, m.now()) {
			continue
		}
		x.wait()
		x.count(minusOne)
		x.Died = time.Time{}
		if !slices.Contains(m.msgs, x) {
			m.msgs = append(m.msgs, x)
		}
	}
	m.dropped = nil
}

// TestDroppedMayBeBack has a crash lose a lease at whose end its message had died and been dropped,
// and has that expire in its stead, or be there again.
func TestDroppedMayBeBack(t *testing.T) {
	for _, expires := range []time.Duration{0, 30 * time.Second} {
		t.Run(expires.String(), func(t *testing.T) {
			b, p, q := frailPlayer(t, &frailty{found: loseLeases})
			b.h.Lasting = nil
			p.both(engine.Settings{DeadKeep: time.Second})
			p.push([]engine.Message{{Queue: q, Key: "a", Due: engine.When{At: p.now}, Terms: engine.Terms{MaxAttempts: 1, ExpireAfter: expires, Remember: time.Hour}}}, false)
			p.lease([]engine.Want{{Queue: q, Max: 1, TTR: time.Second}})
			p.clock.Advance(time.Minute)
			p.tick()
			p.get(engine.Ref{Queue: q, Key: "a"})
			p.e = b.h.Crash(t, p.e)
			p.crashed(p.m)
			if p.compareAll(); p.problem != "" {
				t.Error(p.problem)
			}
		})
	}
}

// TestDroppedBehindALostLease has a kill lose a lease of the process itself, at whose end its message
// would have died, and one that had died before at the end of a lease that lasts be dropped.
func TestDroppedBehindALostLease(t *testing.T) {
	b := newBed(t, frailHarness(&frailty{found: func(m *Model) {
		for _, x := range m.msgs {
			if x.State == engine.Leased && !x.remote {
				x.wait()
				x.count(minusOne)
			}
		}
	}}))
	p := newPlayer(b, b.h.Clock.Now())
	q := p.queues[0]
	p.both(engine.Settings{DeadMax: 1})
	for _, w := range []engine.Want{{Queue: q, Max: 1, TTR: time.Second, Remote: true}, {Queue: q, Max: 1, TTR: time.Hour}} {
		p.push([]engine.Message{{Queue: q, Key: w.TTR.String(), Due: engine.When{At: p.now}, Terms: engine.Terms{MaxAttempts: 1}}}, false)
		p.lease([]engine.Want{w})
		p.clock.Advance(time.Minute)
		p.tick()
	}
	p.e = b.h.Crash(t, p.e)
	p.crashed(p.m)
	if p.compareAll(); p.problem != "" {
		t.Error(p.problem)
	}
}

// TestSlackOfManyCrashes has an engine crash again and again: what it may have to meet again does not
// grow by that.
func TestSlackOfManyCrashes(t *testing.T) {
	b, p, q := frailPlayer(t, &frailty{found: func(*Model) {}})
	p.both(engine.Settings{DeadKeep: time.Second})
	p.push([]engine.Message{{Queue: q, Due: engine.When{At: p.now}, Terms: engine.Terms{MaxAttempts: 1}}}, false)
	want := engine.Want{Queue: q, Max: 1, TTR: time.Second, Remote: true}
	p.lease([]engine.Want{want})
	for range 3 {
		p.clock.Advance(time.Minute)
		p.tick()
		p.lease([]engine.Want{want})
		if met := p.m.slack(q); met != (slack{}) {
			t.Errorf("%+v once met", met)
		}
		p.e = b.h.Crash(t, p.e)
		p.crashed(p.m)
		if again := p.m.slack(q); again.culled != 1 {
			t.Errorf("%+v of one behind a crash", again)
		}
	}
	if p.compareAll(); p.problem != "" {
		t.Error(p.problem)
	}
}

// TestPartOfARedrive has a redrive of two be cut short behind the first, which had died at the end of a
// lease: by what the model was before, that is lost with the power, and the message has expired.
func TestPartOfARedrive(t *testing.T) {
	b, p, q := frailPlayer(t, &frailty{found: loseLeases})
	b.h.Lasting = nil
	message := func(key string, expires time.Duration) engine.Message {
		return engine.Message{Queue: q, Key: key, Due: engine.When{At: p.now}, Terms: engine.Terms{MaxAttempts: 1, ExpireAfter: expires}}
	}
	p.push([]engine.Message{message("a", 30*time.Second), message("b", 0)}, false)
	p.lease([]engine.Want{{Queue: q, Max: 2, TTR: time.Second}})
	p.clock.Advance(time.Minute)
	p.tick()
	before := p.m.clone()
	for m, ids := range map[*Model][]engine.ID{p.e.(frail).Model: p.ids[:1], p.m: p.ids} {
		if r, err := m.Redrive(t.Context(), q, ids, 0); err != nil || r.Redriven != int64(len(ids)) {
			t.Fatal(r, err)
		}
	}
	p.e = b.h.Crash(t, p.e)
	for _, m := range []*Model{before, p.m} {
		p.crashed(m)
	}
	if problems := p.becomes([]*Model{before, p.m, p.merged(before, p.m)}); problems != "" {
		t.Error(problems)
	}
}

// TestReleaseBehindACancel has one be released that had died at the end of a lease, when another under its
// key had been pushed and cancelled: that forgets the key, which a loss of the lease would not, and who has
// expired in the queue hides that none is counted.
func TestReleaseBehindACancel(t *testing.T) {
	b, p, q := frailPlayer(t, &frailty{})
	b.h.Lasting = nil
	message := func(key string, expires time.Duration) []engine.Message {
		due := engine.When{At: p.now.Add(-time.Hour)}
		return []engine.Message{{Queue: q, Key: key, Due: due, Terms: engine.Terms{MaxAttempts: 1, ExpireAfter: expires, Remember: time.Hour}}}
	}
	p.push(message("a", 0), false)
	p.lease([]engine.Want{{Queue: q, Max: 1, TTR: time.Second, Remote: true}})
	p.clock.Advance(time.Minute)
	p.tick()
	p.push(message("a", 0), false)
	p.cancel(engine.Ref{Queue: q, Key: "a"})
	p.push(message("b", time.Minute), false)
	before, after := p.m.clone(), p.m
	for e, token := range map[engine.Engine]string{p.e: p.leases[0].engine, after: p.leases[0].model} {
		if r, err := e.Settle(t.Context(), []engine.Settlement{{Token: token, Do: engine.Release}}); err != nil || r[0].Err != nil {
			t.Fatal(r, err)
		}
	}
	p.e = b.h.Crash(t, p.e)
	for _, m := range []*Model{before, after} {
		p.crashed(m)
	}
	if problems := p.becomes([]*Model{before, after}); problems != "" || p.m != after || p.m.remembered(q, "a") != nil {
		t.Errorf("taken for what was before: %v%s", p.m == before, problems)
	}
}

// TestExpiredAtOnceBesideTheDead has two die under one key, and a push under it expire at once: which of
// the dead is shown is open where none is remembered, but not that the key is.
func TestExpiredAtOnceBesideTheDead(t *testing.T) {
	_, p, q := frailPlayer(t, &frailty{})
	message := engine.Message{Queue: q, Key: "a", Due: engine.When{At: p.now}, Terms: engine.Terms{MaxAttempts: 1, Remember: time.Hour}}
	for range 2 {
		p.push([]engine.Message{message}, false)
		p.lease([]engine.Want{{Queue: q, Max: 1, TTR: time.Second}})
		p.clock.Advance(time.Minute)
		p.tick()
		p.lease([]engine.Want{{Queue: q, Max: 1, TTR: time.Second}})
	}
	before := p.m.clone()
	message.ExpireAfter = time.Second
	p.push([]engine.Message{message}, false)
	if problems := p.becomes([]*Model{p.m}); problems != "" {
		t.Error(problems)
	}
	before.faded[q]++ // which hides that one more is counted
	if problems := p.becomes([]*Model{before}); !strings.Contains(problems, "shown") {
		t.Errorf("without the push: %q", problems)
	}
}

// TestPushOfSomeIsRefused has a push of two fail that an engine has carried out, which took the first
// for refused by max_pending: the other has the id that the model had given to that one.
func TestPushOfSomeIsRefused(t *testing.T) {
	f := &frailty{refuses: func(m *Model, queue string, room int64) bool { return int64(len(m.expired[queue])) >= room }}
	b := newBed(t, frailHarness(f))
	p := newPlayer(b, b.h.Clock.Now())
	p.fault, p.faultPending = &b.h.Faults[1], true
	q, other := p.queues[0], p.queues[1]
	p.both(engine.Settings{MaxPending: 1})
	message := func(queue, key string, due, after time.Duration) engine.Message {
		return engine.Message{Queue: queue, Key: key, Due: engine.When{At: p.now.Add(due)}, Terms: engine.Terms{ExpireAfter: after}}
	}
	p.push([]engine.Message{message(q, "a", -time.Hour, time.Minute)}, false) // expires at once
	p.before = p.m.clone()
	p.guard(func() {
		p.fault.Arm(p.e, 1)
		p.push([]engine.Message{message(q, "b", 0, 0), message(other, "c", time.Hour, 0)}, false)
	})
	if p.compareAll(); p.problem != "" {
		t.Error(p.problem)
	}
}

// TestUnansweredLeaseIsGivenBack has a lease of a message that lapsed twice stay unanswered and
// be given back: the message may be granted beside others.
func TestUnansweredLeaseIsGivenBack(t *testing.T) {
	b, p, q := frailPlayer(t, &frailty{fails: func(m *Model) {
		for _, x := range m.msgs {
			if x.situation(m.now()) == leased {
				x.wait()
				x.count(minusOne)
			}
		}
	}})
	p.fault = &b.h.Faults[1]
	message := []engine.Message{{Queue: q, Due: engine.When{At: p.now}}}
	want := engine.Want{Queue: q, Max: 1, TTR: time.Second, Remote: true}
	p.push(message, false)
	for range 2 {
		p.lease([]engine.Want{want})
		p.clock.Advance(time.Minute)
		p.tick()
	}
	p.push(message, false)
	p.before, p.armed = p.m.clone(), true
	p.guard(func() {
		p.fault.Arm(p.e, 1)
		p.lease([]engine.Want{want})
	})
	want.Max = 2
	if p.lease([]engine.Want{want}); p.problem != "" || len(p.leases) != 2 {
		t.Errorf("%d leases; %s", len(p.leases), p.problem)
	}
}

// TestSimulation has engines do what the contract leaves open, each in its way.
func TestSimulation(t *testing.T) {
	for name, f := range map[string]*frailty{
		"as the model does": {},
		"who has expired counts until the queue is leased from": {refuses: func(m *Model, queue string, room int64) bool {
			return int64(len(m.expired[queue])) >= room
		}},
		"a crash loses leases, and the deaths they led to": {found: loseLeases},
	} {
		t.Run(name, func(t *testing.T) {
			h := frailHarness(f)
			h.Lasting = func(engine.Engine) bool { return f.found == nil }
			Simulate(t, h, 0)
		})
	}
}

func TestThrong(t *testing.T) {
	clock := NewClock()
	RunThrong(t, Harness{Clock: clock, Open: func(*testing.T) engine.Engine { return NewModel(clock.Now) }})
}

// TestExpiredMayBePending has pushes refused for the sake of some who have expired, one of them in
// the same call: as the contract allows, and when it does no more.
func TestExpiredMayBePending(t *testing.T) {
	for name, x := range map[string]struct {
		refuses func(m *Model, queue string, room int64) bool
		agrees  bool
	}{
		"never":                          {nil, true},
		"until the queue is leased from": {func(m *Model, queue string, room int64) bool { return int64(len(m.expired[queue])) >= room }, true},
		"for good":                       {func(m *Model, _ string, room int64) bool { return int64(len(m.ghosts)) >= room }, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, p, q := frailPlayer(t, &frailty{refuses: x.refuses})
			p.both(engine.Settings{MaxPending: 1})
			message := func(key string, after time.Duration) engine.Message {
				return engine.Message{Queue: q, Key: key, Due: engine.When{At: p.now.Add(-time.Hour)}, Terms: engine.Terms{ExpireAfter: after}}
			}
			p.push([]engine.Message{message("a", time.Minute), message("b", 0)}, false)
			p.push([]engine.Message{message("c", 0)}, false)
			p.cancel(engine.Ref{Queue: q, Key: "b"})
			p.cancel(engine.Ref{Queue: q, Key: "c"})
			p.touch(q)
			p.push([]engine.Message{message("d", 0)}, false)
			if agrees := p.problem == ""; agrees != x.agrees {
				t.Errorf("agrees: %v; %s", agrees, p.problem)
			}
		})
	}
}

// TestSimulationFindsFaults has engines err in ways that are rare, each of which random
// histories come upon.
func TestSimulationFindsFaults(t *testing.T) {
	for name, f := range map[string]*frailty{
		"a crash forgets the newest": {found: func(m *Model) { m.msgs = m.msgs[:max(0, len(m.msgs)-1)] }},
		"a crash forgets deaths": {found: func(m *Model) {
			for _, x := range m.msgs {
				if x.State == engine.Dead {
					x.wait()
				}
			}
		}},
		"a crash ends leases and counts their attempts": {found: func(m *Model) {
			for _, x := range m.msgs {
				if x.State == engine.Leased {
					x.wait()
				}
			}
		}},
		"a crash forgets pauses":      {found: func(m *Model) { clear(m.pauses) }},
		"a crash forgets settings":    {found: func(m *Model) { clear(m.settings) }},
		"a crash forgets who is gone": {found: func(m *Model) { m.memories = nil }},
		"a crash has ids given again": {found: func(m *Model) { m.lastID = 0 }},
		"a call that fails loses another's message": {fails: func(m *Model) {
			if len(m.msgs) > 0 {
				m.msgs = m.msgs[1:]
			}
		}},
		"now and then a message is lost": {errs: func(m *Model, call int) {
			if call%90 == 0 && len(m.msgs) > 0 {
				m.msgs = m.msgs[1:]
			}
		}},
		"now and then an attempt is": {errs: func(m *Model, call int) {
			if call%90 == 0 && len(m.msgs) > 0 {
				m.msgs[0].Attempt = 0
			}
		}},
		"now and then a priority is": {errs: func(m *Model, call int) {
			if call%90 == 0 && len(m.msgs) > 0 {
				m.msgs[0].Priority++
			}
		}},
		"a crash makes what was claimed dead again": {found: func(m *Model) {
			for _, x := range m.msgs {
				if x.State == engine.Leased && x.Attempt > x.MaxAttempts {
					x.die(m.now())
				}
			}
		}},
		"a push is refused where there is room": {refuses: func(_ *Model, _ string, room int64) bool { return room < 3 }},
		"an atomic push keeps some":             {halves: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := frailHarness(f)
			b := newBed(t, h)
			for seed := range uint64(60) {
				fault := &h.Faults[seed%2]
				if f.errs != nil || f.refuses != nil || f.halves || f.fails == nil && seed%3 == 0 {
					fault = nil
				}
				if p := b.play(seed, newHistory(seed, &b.h), h.Clock.Now(), fault); p.problem != "" {
					t.Logf("seed %d: %s", seed, p.problem)
					return
				}
			}
			t.Error("60 histories did not come upon it")
		})
	}
}
