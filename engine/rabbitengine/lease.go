package rabbitengine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Lease fetches messages from the work queues one by one. LeaseWait uses consumers and is
// faster for many.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	const op = "lease"
	if err := e.gate.Enter(ctx, op); err != nil {
		return engine.Grant{}, err
	}
	defer e.gate.Leave()
	if i := slices.IndexFunc(wants, func(w engine.Want) bool { return w.Remote }); i >= 0 {
		return engine.Grant{}, lacks(op, engine.Ref{Queue: wants[i].Queue}, noRemote)
	}
	grant := engine.Grant{Queues: make([]engine.Granted, len(wants))}
	for i, w := range wants {
		grant.Queues[i] = e.leaseOne(ctx, w)
		if err := ctx.Err(); err != nil {
			e.giveBack(grant.Queues[:i+1])
			return engine.Grant{}, &engine.Error{Op: op, Queue: w.Queue, Err: err}
		}
	}
	if len(wants) > 0 && !slices.ContainsFunc(grant.Queues, func(g engine.Granted) bool { return !errors.Is(g.Err, engine.ErrUnavailable) }) {
		return engine.Grant{}, grant.Queues[0].Err
	}
	grant.Now = e.now(grant.Queues)
	for i := range grant.Queues {
		if next := &grant.Queues[i].NextDue; !next.IsZero() && !next.After(grant.Now) {
			*next = grant.Now.Add(time.Millisecond)
		}
	}
	return grant, nil
}

const noRemote = "a lease of RabbitMQ is valid only on the connection that delivered the message, so no other process can settle it"

// now returns this process's time, but not before the due times granted: those were decided
// by the broker or by another clock.
func (e *Engine) now(granted []engine.Granted) time.Time {
	now := time.Now().UTC()
	for i := range granted {
		for k := range granted[i].Messages {
			if due := granted[i].Messages[k].Due; due.After(now) {
				now = due
			}
		}
	}
	return now
}

func (e *Engine) giveBack(granted []engine.Granted) {
	var back []engine.Settlement
	for i := range granted {
		back = append(back, engine.Releases(granted[i].Messages)...)
	}
	if back != nil {
		_, _ = e.settle(context.Background(), back) // on failure they lapse
	}
}

// leaseOne answers one want.
func (e *Engine) leaseOne(ctx context.Context, w engine.Want) (g engine.Granted) {
	if g.Err = w.Check(); g.Err != nil {
		return g
	}
	s, err := e.current(ctx, "lease", w.Queue)
	if err != nil {
		return engine.Granted{Err: err}
	}
	e.mu.Lock()
	q := e.of(w.Queue)
	q.polls++
	e.mu.Unlock()
	defer e.unawaited([]*queue{q}, nil)
	take := taking{e: e, q: q, max: w.Max, ttr: w.TTR}
	left, err := take.gather(ctx, s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lapse()
	g.More = take.all() || len(q.here) > 0 || left
	g.Messages = take.got
	if !g.More {
		g.NextDue = e.firstEnd(q)
	}
	g.Died, q.died = q.died, 0
	if len(take.got) == 0 {
		g.Err = fault("lease", w.Queue, err)
	}
	return g
}

// gets is the channel for fetching single messages.
type gets struct {
	mu sync.Mutex
	line
}

// get fetches one message from a work queue; nil if the queue is empty or does not exist.
func (s *session) get(ctx context.Context, queue string) (*amqp.Delivery, *amqp.Channel, error) {
	name := s.layout.workQueue(queue)
	if !s.knows(brokerQueue{queue: queue}) {
		// Fetching from a queue that does not exist closes the channel, with the leases on
		// it.
		_, err := s.stock(name)
		if notFound(err) {
			return nil, nil, nil
		}
		if err == nil { // bound to the exchange
			err = s.ensure(ctx, brokerQueue{queue: queue})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	s.gets.mu.Lock()
	defer s.gets.mu.Unlock()
	ch := s.gets.open()
	if ch == nil {
		made, err := s.in.Channel()
		if err != nil {
			return nil, nil, err
		}
		ch = made
		s.gets.ch.Store(ch)
	}
	d, ok, err := ch.Get(name, false)
	switch {
	case notFound(err):
		s.forget(brokerQueue{queue: queue})
		return nil, nil, nil
	case err != nil || !ok:
		return nil, nil, err
	}
	return &d, ch, nil
}

// taking leases the fetched messages of a queue. all and one are called with Engine.mu held.
type taking struct {
	e    *Engine
	q    *queue
	max  int
	ttr  time.Duration
	got  []engine.Lease
	size int
}

// gather fetches the missing messages from the broker, and reports whether it has more. It
// leases nothing: a short lease could lapse before the call ends and be granted in it twice.
func (t *taking) gather(ctx context.Context, s *session) (left bool, err error) {
	for !t.enough() {
		d, ch, err := s.get(ctx, t.q.name)
		if err != nil || d == nil {
			return left, err
		}
		left = d.MessageCount > 0
		t.e.arrived(t.q, s, ch, nil, d)
	}
	return left, nil
}

// enough reports whether enough messages have been fetched.
func (t *taking) enough() bool {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	t.e.lapse()
	n, size := 0, 0
	for _, x := range t.q.here {
		if n >= t.max || size >= engine.AnswerBytes {
			break
		}
		if x.Attempt < x.MaxAttempts && !x.ch.IsClosed() {
			n, size = n+1, size+len(x.Body)
		}
	}
	return n >= t.max || size >= engine.AnswerBytes
}

func (t *taking) full() bool { return len(t.got) >= t.max || t.size >= engine.AnswerBytes }

// all leases the fetched messages, up to the number asked for, and reports whether that
// number was reached.
func (t *taking) all() bool {
	for len(t.q.here) > 0 && !t.full() {
		x := t.q.here[0]
		t.q.here[0] = nil
		t.q.here = t.q.here[1:]
		if x.ch.IsClosed() {
			t.e.unlease(x)
			continue
		}
		if x.Attempt >= x.MaxAttempts {
			t.e.spend(t.q, x)
			continue
		}
		t.one(x)
	}
	return t.full() && len(t.q.here) > 0
}

// one leases an item.
func (t *taking) one(x *item) {
	delete(t.e.leases, x.nonce) // a lapsed lease
	x.nonce = codec.NewNonce()
	x.Attempt++
	t.e.hold(x, x.until(t.ttr))
	t.size += len(x.Body)
	out := engine.Lease{Info: x.Info, Token: codec.Token{ID: x.ID, Nonce: x.nonce}.String()}
	out.Body, out.Headers, out.Backoff = bytes.Clone(x.Body), slices.Clone(x.Headers), slices.Clone(x.Backoff)
	out.State, out.Deadline = engine.Leased, x.deadline
	t.got = append(t.got, out)
}

// until returns the deadline of a lease that begins now; ttr 0 is the message's own.
func (x *item) until(ttr time.Duration) time.Time {
	if ttr <= 0 {
		ttr = x.TTR
	}
	return time.UnixMilli(engine.When{In: ttr}.Resolve(time.Now())).UTC()
}

// hold makes an item's lease active until a deadline. Called with Engine.mu held.
func (e *Engine) hold(x *item, deadline time.Time) {
	x.q, x.deadline = e.of(x.Queue), deadline
	x.q.leased++
	e.leases[x.nonce] = x
	x.end = e.ends.Schedule(deadline, x)
	if first, _ := e.ends.Next(); !first.Before(deadline) {
		e.stir()
	}
}
