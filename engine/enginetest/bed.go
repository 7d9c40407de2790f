package enginetest

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// patience bounds the suite's waits, on a busy machine.
const patience = 2 * time.Minute

// bed is the fixture of one test: an engine, a queue in it, and calls that fail the test
// when the engine fails.
type bed struct {
	*testing.T
	h     Harness
	e     engine.Engine
	caps  engine.Capabilities
	queue string

	// unit is a duration that a test may let pass.
	unit time.Duration
}

func newBed(t *testing.T, h Harness) *bed {
	e := h.Open(t)
	b := &bed{T: t, h: h, e: e, caps: e.Capabilities(), queue: queueName(), unit: 300 * time.Millisecond}
	if h.Clock != nil {
		b.unit = 10 * time.Second
	}
	if b.caps.Precision > b.unit/4 {
		b.unit = 4 * b.caps.Precision
	}
	t.Cleanup(func() {
		if err := b.e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func queueName() string { return "t-" + strings.ToLower(rand.Text()) }

// queueName returns the name of a queue for a random history. It is new on every run, unless
// each history has its own store.
func (b *bed) queueName(own string) string {
	if b.h.Seed != nil {
		return own
	}
	return queueName()
}

// need skips the test with a message if the engine lacks a capability.
func (b *bed) need(capability string, has bool) {
	b.Helper()
	if !has {
		b.Skipf("%s: no capability %s", b.caps.Name, capability)
	}
}

// optional returns the engine as an optional interface; an engine that claims the capability
// must implement it.
func optional[I any](b *bed, capability string, has bool) I {
	b.Helper()
	b.need(capability, has)
	i, ok := b.e.(I)
	if !ok {
		b.Fatalf("%s claims %s and lacks its methods", b.caps.Name, capability)
	}
	return i
}

// msg returns a message with a fixed backoff and a lease that outlasts the test; no other
// terms are set.
func (b *bed) msg(key string, due engine.When) engine.Message {
	if !b.caps.Keys {
		key = ""
	}
	return engine.Message{
		Queue: b.queue, Key: key, Due: due,
		Content: engine.Content{Body: []byte("body of " + key), ContentType: "text/plain"},
		Terms:   engine.Terms{Backoff: []time.Duration{long}, TTR: long},
	}
}

// able removes terms that the engine does not support.
func (b *bed) able(t engine.Terms) engine.Terms {
	if !b.caps.Priority {
		t.Priority = nil
	}
	if !b.caps.Expiry {
		t.ExpireAfter = 0
	}
	if !b.caps.Remember {
		t.Remember = 0
	}
	if !b.caps.Isolate && t.Isolate != nil && *t.Isolate {
		t.Isolate = nil
	}
	return t
}

// expires returns the expiry of a message that is due then; zero: never.
func expires(due time.Time, p engine.Policy) time.Time {
	if p.ExpireAfter == 0 {
		return time.Time{}
	}
	return due.Add(p.ExpireAfter)
}

var (
	dueNow   = engine.When{}
	dueLater = engine.When{In: long}
)

// in returns a due time n units from the engine's now.
func (b *bed) in(n int) engine.When { return engine.When{In: time.Duration(n) * b.unit} }

// push pushes one message that must succeed.
func (b *bed) push(m engine.Message) engine.PushResult {
	b.Helper()
	r := b.tryPush(m)
	if r.Err != nil {
		b.Fatalf("push of key %q: %v", m.Key, r.Err)
	}
	return r
}

// pushAs pushes a message with a conflict policy, which must succeed.
func (b *bed) pushAs(c engine.Conflict, key string, due engine.When) engine.PushResult {
	b.Helper()
	m := b.msg(key, due)
	m.OnConflict = c
	return b.push(m)
}

// tryPush pushes one message, which may fail.
func (b *bed) tryPush(m engine.Message) engine.PushResult {
	b.Helper()
	results, err := b.e.Push(b.Context(), []engine.Message{m})
	if err != nil || len(results) != 1 {
		b.Fatalf("push of key %q: %d results for 1 message, error %v", m.Key, len(results), err)
	}
	return results[0]
}

// lease asks once for up to max messages of the bed's queue, under leases of ttr (0: each
// message's own), and checks the invariants of every grant.
func (b *bed) lease(max int, ttr time.Duration) engine.Granted {
	b.Helper()
	g, _ := b.leaseAt(max, ttr)
	return g
}

func (b *bed) leaseAt(max int, ttr time.Duration) (engine.Granted, time.Time) {
	b.Helper()
	g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: max, TTR: ttr}})
	if err != nil || len(g.Queues) != 1 || g.Queues[0].Err != nil {
		b.Fatalf("lease: %v, %+v", err, g)
	}
	q := g.Queues[0]
	if problem := b.checkGrant(g.Now, engine.Want{Max: max, TTR: ttr}, q); problem != "" {
		b.Fatal(problem)
	}
	return q, g.Now
}

// checkGrant returns the violated invariant of a grant, "" if there is none.
func (b *bed) checkGrant(now time.Time, w engine.Want, g engine.Granted) string {
	switch {
	case len(g.Messages) > w.Max:
		return fmt.Sprintf("%d messages leased, %d asked for", len(g.Messages), w.Max)
	case !g.More && !g.NextDue.IsZero() && !g.NextDue.After(now):
		return fmt.Sprintf("NextDue %v is not after now %v: a waiter would spin", g.NextDue, now)
	}
	for _, l := range g.Messages {
		ttr := cmp.Or(w.TTR, l.TTR) + l.Spread(l.ID, l.Attempt)
		switch {
		case l.Due.After(now):
			return fmt.Sprintf("id %v is early: due %v, now %v", l.ID, l.Due, now)
		case l.Deadline.Sub(now) > ttr+max(b.caps.Precision, time.Millisecond):
			return fmt.Sprintf("id %v: deadline %v of a lease of %v begins after now %v", l.ID, l.Deadline, ttr, now)
		case l.State != engine.Leased || l.Token == "" || len(l.Token) > 128 || l.Attempt < 1:
			return fmt.Sprintf("a bad lease: %+v", l)
		case !l.Deadline.After(now) && (b.h.Clock != nil || ttr > patience):
			// Only a lease shorter than the call may be over already.
			return fmt.Sprintf("id %v: deadline %v is not after now %v", l.ID, l.Deadline, now)
		case strings.ContainsFunc(l.Token, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r))
		}):
			return fmt.Sprintf("token %q is not URL-safe", l.Token)
		}
	}
	return ""
}

// leaseN leases until it holds n messages. They must come at once on an injected clock, and
// soon on a real one.
func (b *bed) leaseN(n int, ttr time.Duration) []engine.Lease {
	b.Helper()
	var got []engine.Lease
	b.eventually(fmt.Sprintf("%d messages to lease", n), func() bool {
		for more := 1; more > 0 && len(got) < n; {
			some := b.lease(min(n-len(got), engine.MaxLease), ttr).Messages
			got, more = append(got, some...), len(some)
		}
		return len(got) == n
	})
	return got
}

// lease1 leases one message.
func (b *bed) lease1(ttr time.Duration) engine.Lease {
	b.Helper()
	return b.leaseN(1, ttr)[0]
}

// none fails the test if anything can be leased now.
func (b *bed) none(why string) {
	b.Helper()
	if g := b.lease(10, 0); len(g.Messages) > 0 {
		b.Fatalf("%s: leased %+v", why, g.Messages)
	}
}

// settle settles one lease, which must succeed.
func (b *bed) settle(s engine.Settlement) engine.Settled {
	b.Helper()
	r := b.trySettle(s)
	if r.Err != nil {
		b.Fatalf("%v: %v", s.Do, r.Err)
	}
	return r
}

// trySettle settles one lease, which may fail.
func (b *bed) trySettle(s engine.Settlement) engine.Settled {
	b.Helper()
	r, err := b.e.Settle(b.Context(), []engine.Settlement{s})
	if err != nil || len(r) != 1 {
		b.Fatalf("%v: %d results for 1, error %v", s.Do, len(r), err)
	}
	return r[0]
}

func (b *bed) ack(token string) {
	b.Helper()
	b.settle(engine.Settlement{Token: token, Do: engine.Ack})
}

// lost fails the test unless an ack with token returns ErrLeaseLost.
func (b *bed) lost(token string) {
	b.Helper()
	b.is(b.trySettle(engine.Settlement{Token: token, Do: engine.Ack}).Err, engine.ErrLeaseLost)
}

func (b *bed) key(key string) engine.Ref  { return engine.Ref{Queue: b.queue, Key: key} }
func (b *bed) id(id engine.ID) engine.Ref { return engine.Ref{Queue: b.queue, ID: id} }
func (b *bed) bury(token, why string) {
	b.Helper()
	b.settle(engine.Settlement{Token: token, Do: engine.Bury, Reason: why})
}
func (b *bed) cancel(ref engine.Ref) error {
	b.Helper()
	errs, err := b.e.Cancel(b.Context(), []engine.Ref{ref})
	if err != nil || len(errs) != 1 {
		b.Fatalf("cancel: %d results for 1, error %v", len(errs), err)
	}
	return errs[0]
}

// get returns a message, which must exist.
func (b *bed) get(ref engine.Ref) engine.Info {
	b.Helper()
	i, err := b.e.Get(b.Context(), ref)
	if err != nil {
		b.Fatalf("get %+v: %v", ref, err)
	}
	return i
}

// absent fails the test if the ref finds something.
func (b *bed) absent(ref engine.Ref) {
	b.Helper()
	_, err := b.e.Get(b.Context(), ref)
	b.is(err, engine.ErrNotFound)
}

// state fails the test unless the message has this state and attempt.
func (b *bed) state(ref engine.Ref, want engine.State, attempt uint32) engine.Info {
	b.Helper()
	i := b.get(ref)
	b.inState(i, want, attempt)
	return i
}

func (b *bed) inState(i engine.Info, want engine.State, attempt uint32) {
	b.Helper()
	if i.State != want || i.Attempt != attempt {
		b.Fatalf("id %v is %v with attempt %d, not %v with %d", i.ID, i.State, i.Attempt, want, attempt)
	}
}

// is fails the test unless err is an *engine.Error that wraps want; nil wants nil.
func (b *bed) is(err, want error) {
	b.Helper()
	var e *engine.Error
	switch {
	case !errors.Is(err, want):
		b.Fatalf("error is %v, not %v", err, want)
	case want != nil && (!errors.As(err, &e) || e.Op == ""):
		b.Fatalf("error is a bare %T (%v), not an *engine.Error with its Op", err, err)
	}
}

// now returns the time of the engine's clock.
func (b *bed) now() time.Time {
	b.Helper()
	g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue + "-clock", Max: 1}})
	if err != nil {
		b.Fatalf("lease: %v", err)
	}
	return g.Now
}

// pass lets n units of the engine's time pass, by its own clock.
func (b *bed) pass(n int) {
	b.Helper()
	d := time.Duration(n) * b.unit
	if b.h.Clock != nil {
		b.h.Clock.Advance(d)
		return
	}
	end := b.now().Add(d + 2*time.Millisecond) // dues and deadlines are rounded up
	b.eventually("time to pass", func() bool { return !b.now().Before(end) })
}

// eventually waits for cond. An injected clock does not advance, so there cond must hold at
// once; otherwise it is polled at growing intervals.
func (b *bed) eventually(what string, cond func() bool) {
	b.Helper()
	if b.h.Clock != nil {
		if !cond() {
			b.Fatalf("waited in vain for %s", what)
		}
		return
	}
	b.soon(what, cond)
}

// soon waits for cond on any clock: for the remains of interrupted calls.
func (b *bed) soon(what string, cond func() bool) {
	b.Helper()
	giveUp := time.After(patience)
	for wait := time.Millisecond; !cond(); wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-giveUp:
			b.Fatalf("waited in vain for %s", what)
		case <-time.After(wait):
		}
	}
}

func ids[T any](of []T, id func(T) engine.ID) []engine.ID {
	all := make([]engine.ID, len(of))
	for i, x := range of {
		all[i] = id(x)
	}
	return all
}

func leaseIDs(l []engine.Lease) []engine.ID {
	return ids(l, func(l engine.Lease) engine.ID { return l.ID })
}
func infoIDs(l []engine.Info) []engine.ID {
	return ids(l, func(i engine.Info) engine.ID { return i.ID })
}

func (b *bed) sameIDs(what string, got, want []engine.ID) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Fatalf("%s: ids %v, want %v", what, got, want)
	}
}
