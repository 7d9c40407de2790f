package rabbitengine

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// Lease takes what is in the work queues, one message after the other; LeaseWait, which has
// them sent, takes many in less time.
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

const noRemote = "a lease of RabbitMQ lasts as long as the connection on which the message came, so no other process can settle it"

// now is the time, by the clock of this process, but not before the due of what is given:
// that the broker, or another's clock, has decided.
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
		_, _ = e.settle(context.Background(), back) // what cannot be given back lapses
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
	defer e.unpolled(q)
	take := taking{e: e, q: q, max: w.Max, ttr: w.TTR}
	left, err := take.gather(s)
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

// gets is the channel on which deliveries are asked for one by one.
type gets struct {
	mu sync.Mutex
	line
}

// get takes one message out of a work queue; nil: there is none, or no such queue.
func (s *session) get(queue string) (*amqp.Delivery, *amqp.Channel, error) {
	name := s.layout.workQueue(queue)
	if !s.knows(name) {
		// To ask for what is not there ends the channel, and with it the leases on it.
		_, err := s.stock(name)
		if notFound(err) {
			return nil, nil, nil
		}
		if err == nil { // bound as well
			err = s.ensureWork(queue)
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
		s.forget(name)
		return nil, nil, nil
	case err != nil || !ok:
		return nil, nil, err
	}
	return &d, ch, nil
}

// taking leases what is here of a queue. Engine.mu is held while all and one work.
type taking struct {
	e    *Engine
	q    *queue
	max  int
	ttr  time.Duration
	got  []engine.Lease
	size int
}

// gather asks the broker for as much as is not here yet, and reports whether it has more.
// Nothing is leased meanwhile: a short lease that lapsed before the call is over would be
// given out in it once more.
func (t *taking) gather(s *session) (left bool, err error) {
	for !t.enough() {
		d, ch, err := s.get(t.q.name)
		if err != nil || d == nil {
			return left, err
		}
		left = d.MessageCount > 0
		t.e.arrived(t.q, s, ch, nil, d)
	}
	return left, nil
}

// enough reports whether as much is here as is asked for.
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

// all leases what is here, as much as is asked for, and reports whether it ended because
// of that.
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
	e := t.e
	if x.lease != nil { // the one that has lapsed
		delete(e.leases, x.lease.nonce)
	}
	ttr := t.ttr
	if ttr <= 0 {
		ttr = x.TTR
	}
	now := time.Now()
	l := &lease{item: x, q: t.q, nonce: token.NewNonce(), deadline: time.UnixMilli(engine.When{In: ttr}.Resolve(now)).UTC()}
	x.lease = l
	x.Attempt++
	e.leases[l.nonce] = l
	heap.Push(&e.ends, l)
	if l.at == 0 {
		e.stir()
	}
	t.q.leased++
	t.size += len(x.Body)
	out := engine.Lease{Info: x.Info, Token: token.Token{ID: x.ID, Nonce: l.nonce}.String()}
	out.Body, out.Headers, out.Backoff = bytes.Clone(x.Body), slices.Clone(x.Headers), slices.Clone(x.Backoff)
	out.State, out.Deadline = engine.Leased, l.deadline
	t.got = append(t.got, out)
}
