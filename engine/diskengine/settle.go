package diskengine

import (
	"context"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Settle ends or extends leases. It answers once that is durable.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	settled := make([]engine.Settled, len(s))
	err := e.do(ctx, "settle", func(c *call) error {
		if err := c.seekAcked(s); err != nil {
			return err
		}
		return c.each(len(s), func(i int) error {
			one, err := c.settle(&s[i])
			if store.IsUnreadable(err) {
				one, err = engine.Settled{Err: c.unreadable(c.e.tokenRef(s[i].Token), err)}, nil
			}
			settled[i] = one
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return settled, nil
}

// seekAcked reads, all at once, what acks need of messages in sstables.
func (c *call) seekAcked(all []engine.Settlement) error {
	e := c.e
	if len(all) == 1 || len(e.store.Outer.Load().Of[memtable.Live]) == 0 {
		return nil
	}
	lacks := false
	e.store.Mu.Lock()
	c.ms = e.cfg.Now().UnixMilli()
	for i := range all {
		t, ok := codec.ParseToken(all[i].Token)
		if !ok || all[i].Do != engine.Ack {
			continue
		}
		l := e.leases.ByID(uint64(t.ID))
		if l == nil || l.Nonce != t.Nonce || l.Remember == 0 && c.listedFrom(e.numbered[l.Queue]) > c.ms {
			continue
		}
		if at := e.spotOfLease(l); at.Src != nil {
			_, err := c.reader.Head(at)
			lacks = lacks || err == store.ErrLack
		}
	}
	e.store.Mu.Unlock()
	if !lacks {
		return nil
	}
	return c.withoutLock(c.reader.Read)
}

// tokenRef names the message of a token.
func (e *Engine) tokenRef(s string) (ref engine.Ref) {
	if t, ok := codec.ParseToken(s); ok {
		ref.ID = t.ID
		if q := e.numbered[uint32(t.Queue)]; q != nil {
			ref.Queue = q.name
		}
	}
	return ref
}

func lost(queue string, id engine.ID) error {
	return engine.Refuse("settle", engine.Ref{Queue: queue, ID: id}, engine.ErrLeaseLost)
}

// settle carries out a settlement. Its error ends the whole call; an error of the settlement
// is in the result.
func (c *call) settle(s *engine.Settlement) (engine.Settled, error) {
	if err := s.Check(); err != nil {
		return engine.Settled{Err: err}, nil
	}
	t, ok := codec.ParseToken(s.Token)
	var q *queue
	if ok && t.Queue>>32 == 0 {
		q = c.e.numbered[uint32(t.Queue)]
	}
	if q == nil {
		return engine.Settled{Err: lost("", 0)}, nil
	}
	if err := c.refresh(q); err != nil {
		return engine.Settled{}, err
	}
	c.see(q)
	m, ok, err := c.tokened(q, &t)
	if err != nil {
		return engine.Settled{}, err
	}
	if !ok {
		return engine.Settled{Queue: q.name, Err: lost(q.name, t.ID)}, nil
	}
	out, err := c.settleOf(&m, s)
	out.Queue = q.name
	return out, err
}

// tokened finds the message that a token settles. If the lease has lapsed, the message is
// pending again or dead, and its state may still name the lease.
func (c *call) tokened(q *queue, t *codec.Token) (m message, ok bool, err error) {
	if l := q.leaseOf(t.ID); l != nil {
		if !l.Given || l.Nonce != t.Nonce {
			return m, false, nil
		}
		if m, err = c.leasedMessage(q, l); err != nil {
			return m, false, err
		}
	} else if m, ok, err = c.byID(q, t.ID); !ok || err != nil || !m.Lapsed || m.Nonce != t.Nonce {
		return m, false, err
	}
	return c.unexpired(m, true, nil)
}

// needHead makes sure that of a message all is read that is to be remembered or listed of it.
func (c *call) needHead(m *message) error {
	if m.bare && (m.Remember > 0 || c.listedFrom(m.q) <= c.ms) {
		return c.need(m, c.reader.Head)
	}
	return nil
}

// settleOf carries out the settlement of a message. If the lapse made the message dead and
// another one has its key by now, it cannot come back: the lease is lost.
func (c *call) settleOf(m *message, s *engine.Settlement) (engine.Settled, error) {
	need := c.needContent
	switch {
	case s.Do == engine.Ack:
		need = c.needHead
	case s.Do == engine.Extend && m.lease != nil && !m.lease.HasLapsed():
		need = nil
	}
	if need != nil {
		if err := need(m); err != nil {
			return engine.Settled{}, err
		}
	}
	v := rules.Settle(s, &m.Policy, m.Due, m.Attempt, c.now)
	if m.area == memtable.Dead && len(m.key) > 0 && (v.State.Live() || v.State == engine.Gone && m.Remember > 0) {
		var hash keyLookup
		held, err := c.holds(m.q, m.key, &hash)
		switch {
		case err != nil:
			return engine.Settled{}, err
		case held && v.State.Live():
			return engine.Settled{Err: lost(m.q.name, m.id)}, nil
		case held:
			m.Remember = 0
		default:
			if err := c.forgetKey(m.q, m.key, &hash); err != nil {
				return engine.Settled{}, err
			}
		}
	}
	switch v.State {
	case engine.Gone:
		c.leave(m, engine.Acked, c.ms, "")
		return engine.Settled{State: engine.Gone}, nil
	case engine.Leased:
		return c.extend(m, s), nil
	}
	c.prioritize(m, v.Priority)
	b := m.base()
	if v.State == engine.Dead {
		c.die(m, b, c.ms, v.Reason)
		c.over = m.q
		return engine.Settled{State: engine.Dead}, nil
	}
	if s.Do == engine.Retry {
		m.fail(&b, c.ms, v.Reason)
	}
	b.Due, b.Attempt = v.Due, v.Attempt
	c.become(m, b, m.content)
	return engine.Settled{State: m.state(c.ms), Until: rules.Instant(m.Due)}, nil
}

// extend gives a lease another deadline. The failure of one that has lapsed is written down.
func (c *call) extend(m *message, s *engine.Settlement) engine.Settled {
	q, l := m.q, m.lease
	deadline := rules.Deadline(&m.Policy, m.id, m.Attempt, s.TTR, c.now)
	if l == nil || l.HasLapsed() {
		nonce, remote, worker := m.Nonce, l == nil || l.Remote, m.worker()
		c.become(m, m.base(), m.content)
		q.leaves(m.Due, m.id)
		l = &lease{ID: uint64(m.id), Queue: q.num, Due: m.Due, Deadline: deadline, Epoch: c.e.store.Epoch, Attempt: m.Attempt, Remote: remote, Given: true, Nonce: nonce}
		know(l, m)
		l = q.lease(l)
		q.leases.SetWorker(l, worker)
	} else {
		q.leases.Extend(l, deadline)
		q.ends = min(q.ends, deadline)
	}
	c.writeLease(l)
	c.touch(q)
	q.arrives(deadline)
	return engine.Settled{State: engine.Leased, Until: rules.Instant(deadline)}
}

// errGone says that the message of a lease is nowhere, which should not happen.
var errGone = errors.New("a message that is leased is not there")
