package enginetest

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry/engine"
)

// paused reports whether queue is paused at now, and until when.
func (m *Model) paused(queue string, now time.Time) (until time.Time, ok bool) {
	until, ok = m.pauses[queue]
	return until, ok && now.Before(until)
}

// Lease leases messages that are due now.
func (m *Model) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	now, err := m.begin(ctx, "lease")
	if err != nil {
		return engine.Grant{}, err
	}
	defer m.mu.Unlock()
	g := engine.Grant{Now: now, Queues: make([]engine.Granted, len(wants))}
	for i, w := range wants {
		g.Queues[i] = m.lease(i, w, now)
	}
	return g, nil
}

// lease answers the n-th want of a call.
func (m *Model) lease(n int, w engine.Want, now time.Time) engine.Granted {
	g := engine.Granted{Expired: len(m.expired[w.Queue])}
	delete(m.expired, w.Queue)
	var due []*modelMessage
	for _, x := range m.msgs {
		if x.Queue != w.Queue {
			continue
		}
		switch x.situation(now) {
		case spent:
			if x.Died.IsZero() {
				g.Died++
				x.Died = x.Deadline // counted once
			}
		case ready, lapsed:
			due = append(due, x)
		}
	}
	if until, ok := m.paused(w.Queue, now); ok {
		if until != forGood {
			g.NextDue = until
		}
		return g
	}
	slices.SortFunc(due, func(a, b *modelMessage) int { return byLease(a.Info, b.Info) })
	places := m.places(w.Queue, now)
	tokens, _ := m.tokens(w.Queue, 0, now)
	bytes, lone := 0, false
	for i, x := range due {
		if g.Held = i == min(places, tokens); g.Held {
			break
		}
		alone := m.alone(n, x, now)
		if g.More = i == w.Max || bytes >= engine.AnswerBytes || i > 0 && (lone || alone); g.More {
			break
		}
		lone = alone
		g.Messages = append(g.Messages, x.lease(w, w.TakerOf(i).Worker, now))
		bytes += len(x.Body)
	}
	left, next := m.tokens(w.Queue, len(g.Messages), now)
	if g.More {
		return g
	}
	if g.Held && left == 0 && len(g.Messages) < places {
		g.NextDue = next
	}
	for _, x := range m.msgs {
		if x.Queue != w.Queue {
			continue
		}
		var next time.Time
		switch x.situation(now) {
		case scheduled:
			next = x.Due
		case leased:
			next = x.Deadline
		}
		if !next.IsZero() && (g.NextDue.IsZero() || next.Before(g.NextDue)) {
			g.NextDue = next
		}
	}
	return g
}

// lease leases x to a worker under a new token.
func (x *modelMessage) lease(w engine.Want, worker string, now time.Time) engine.Lease {
	t := transition(x.situation(now), opLease)
	x.lapse(now)
	x.count(t.Attempt)
	ttr := w.TTR
	if ttr == 0 {
		ttr = x.TTR
	}
	x.State, x.token, x.remote, x.extended, x.unsure, x.Died = engine.Leased, newToken(x.ID), w.Remote, false, false, time.Time{}
	x.Worker, x.Started = worker, instant(now.UnixMilli())
	x.hold(ttr, now)
	l := engine.Lease{Info: x.info(now), Token: x.token}
	l.Failures = nil
	return l
}

// hold sets the deadline of a lease that begins or is extended now.
func (x *modelMessage) hold(ttr time.Duration, now time.Time) {
	x.Deadline = instant(engine.When{In: ttr + x.Spread(x.ID, x.Attempt)}.Resolve(now))
}

// alone reports whether x, which is ready or lapsed, must be granted alone to the n-th want
// of a call. An unsure message must, unless the engine granted others with it.
func (m *Model) alone(n int, x *modelMessage, now time.Time) bool {
	if !x.Alone(x.Attempt) {
		return false
	}
	if x.unsure && m.granted != nil {
		got := leaseIDs(m.granted.Queues[n].Messages)
		return len(got) < 2 || !slices.Contains(got, x.ID)
	}
	return x.situation(now) == lapsed
}

// Claim leases one message if it is due, or in the state that ref names.
func (m *Model) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	now, err := m.begin(ctx, "claim")
	if err != nil {
		return engine.Lease{}, err
	}
	defer m.mu.Unlock()
	x := m.find(ref, now)
	s, _ := m.standing(ref, x, now)
	if ref.IfState == engine.Gone {
		err = m.refuseClaim(ref, x, s, now)
	} else {
		err = m.refuseClaimIf(ref, x, s, now)
	}
	if err == nil {
		err = m.held(ref, now)
	}
	if err != nil {
		return engine.Lease{}, err
	}
	m.tokens(ref.Queue, 1, now)
	if ref.IfState != engine.Gone {
		m.wake(x, now)
	}
	return x.lease(want, want.Worker, now), nil
}

// refuseClaim returns the error of a claim of x in situation s, or nil.
func (m *Model) refuseClaim(ref engine.Ref, x *modelMessage, s Situation, now time.Time) error {
	t := transition(s, opClaim)
	_, paused := m.paused(ref.Queue, now)
	switch err := t.Err(); {
	case err == engine.ErrNotDue:
		return engine.RefuseNotDue(ref, x.Due)
	case err != nil:
		return fail("claim", ref, t)
	case paused:
		return engine.RefuseNotDue(ref, time.Time{})
	}
	return nil
}

// refuseClaimIf is refuseClaim for a claim on condition of a state.
func (m *Model) refuseClaimIf(ref engine.Ref, x *modelMessage, s Situation, now time.Time) error {
	op := opClaimIfKey
	if ref.ID != 0 {
		op = opClaimIfID
	}
	if err := x.refuse("claim", ref, transition(s, op), now); err != nil {
		return err
	}
	if ref.IfState == engine.Dead && m.live(x.Queue, x.Key, now) != nil {
		return engine.RefuseTaken(ref)
	}
	return nil
}

// wake makes x ready, for a claim.
func (m *Model) wake(x *modelMessage, now time.Time) {
	if x.info(now).State == engine.Dead {
		m.forget(x.Queue, x.Key)
		x.Expires = time.Time{}
	}
	x.lapse(now)
	x.wait()
	if x.Due.After(now) {
		x.Due = instant(now.UnixMilli())
	}
}

// Peek returns the message of each queue that is leased first.
func (m *Model) Peek(ctx context.Context, queues []string) ([]engine.Info, error) {
	now, err := m.begin(ctx, "peek")
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	first := make([]engine.Info, len(queues))
	for i, queue := range queues {
		ready := m.in(queue, engine.Ready, now)
		if len(ready) > 0 {
			first[i] = slices.MinFunc(ready, byLease)
		}
	}
	return first, nil
}

// Find returns the queues of messages.
func (m *Model) Find(ctx context.Context, ids []engine.ID) ([]string, error) {
	if _, err := m.begin(ctx, "find"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	queues := make([]string, len(ids))
	for i, id := range ids {
		for _, x := range m.msgs {
			if x.ID == id {
				queues[i] = x.Queue
			}
		}
	}
	return queues, nil
}

// Settle ends or extends leases.
func (m *Model) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	now, err := m.begin(ctx, "settle")
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	results := make([]engine.Settled, len(s))
	for i := range s {
		results[i] = m.settle(&s[i], now)
	}
	return results, nil
}

func (m *Model) settle(s *engine.Settlement, now time.Time) engine.Settled {
	m.advance(now)
	op, known := settleOps[s.Do]
	if !known || s.Do == engine.Snooze && s.When == nil {
		return engine.Settled{Err: &engine.Error{Op: "settle", Hint: "an action from Ack to Extend; Snooze needs When", Err: engine.ErrInvalid}}
	}
	var x *modelMessage
	for _, y := range m.msgs {
		if s.Token != "" && y.token == s.Token {
			x = y
		}
	}
	at := x.situation(now)
	if at == scheduled { // it lapsed after the clock went back: it waits for its due time, and its token settles it
		at = lapsed
	}
	t := transition(at, op)
	if t.Err() != nil {
		return engine.Settled{Err: fail("settle", engine.Ref{}, t)}
	}
	revives := t.Next == toDue || t.Next == toReady || t.Next == toLeased
	if t.State == spent && revives {
		if m.live(x.Queue, x.Key, now) != nil {
			t.Result = "lease_lost" // another message holds its key now
			return engine.Settled{Err: fail("settle", engine.Ref{Queue: x.Queue, ID: x.ID, Key: x.Key}, t)}
		}
		m.forget(x.Queue, x.Key)
	}
	x.lapse(now)
	if m.settings[x.Queue].InFlight > 0 {
		defer m.hint(x.Queue) // a place may be free
	}
	x.Died = time.Time{}
	x.count(t.Attempt)
	next := t.Next
	if next == toRetry {
		next = toDue
		if x.Attempt >= x.MaxAttempts {
			next = toDead
		}
	}
	if t.Fails {
		x.fail(instant(now.UnixMilli()), cut(s.Reason))
		x.vague = false
	}
	if s.Priority != nil && next != toFinished && next != toLeased {
		x.Priority = *s.Priority
	}
	switch next {
	case toFinished:
		m.end(x, engine.Acked, x.Worker, instant(now.UnixMilli()), now)
		return engine.Settled{Queue: x.Queue, State: engine.Gone}
	case toDead:
		x.die(now)
		return engine.Settled{Queue: x.Queue, State: engine.Dead}
	case toLeased:
		ttr := s.TTR
		if ttr == 0 {
			ttr = x.TTR
		}
		x.hold(ttr, now)
		x.extended = true
		m.hint(x.Queue) // the new deadline may be nearer
		return engine.Settled{Queue: x.Queue, State: engine.Leased, Until: x.Deadline}
	case toDue:
		when := engine.When{In: x.RetryDelay(x.Attempt)}
		if s.When != nil {
			when = *s.When
		}
		x.Due = instant(when.Resolve(now)) // the expiry does not move
	}
	x.wait()
	m.hint(x.Queue)
	return engine.Settled{Queue: x.Queue, State: x.info(now).State, Until: x.Due}
}

// cut returns what is kept of a reason.
func cut(reason string) string {
	most := engine.MaxReason
	if len(reason) <= most {
		return reason
	}
	for !utf8.RuneStart(reason[most]) {
		most--
	}
	return reason[:most]
}
