package diskengine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Push keeps each message or applies its conflict policy. The messages of many
// queues share few batches.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	msgs, back := lend(ctx, msgs)
	results := make([]engine.PushResult, len(msgs))
	err := e.do(ctx, "push", func(now clock, p *pending) error {
		defer back()
		if err := e.space.check(e, now); err != nil {
			for i := range results {
				results[i].Err = &engine.Error{Op: "push", Queue: msgs[i].Queue, Key: msgs[i].Key, Err: err, Hint: noSpaceHint}
			}
			return nil
		}
		shares, err := e.shares(len(msgs), func(i int) *queue { return e.byName[msgs[i].Queue] }, func(i int) (*queue, error) {
			return e.makeQueue(msgs[i].Queue)
		})
		if err != nil {
			return err
		}
		for i := range shares {
			s := &shares[i]
			s.name = s.q.name
			for _, i := range s.items {
				s.bytes += len(msgs[i].Body)
			}
		}
		fail := func(q *queue, i int, err error) {
			results[i].Err = &engine.Error{Op: "push", Queue: q.name, Key: msgs[i].Key, Err: err, Hint: "what holds the key cannot be read"}
		}
		return e.changeAll(now, p, shares, func(c *change, items []int) error {
			for _, i := range items {
				var err error
				if results[i], err = c.push(&msgs[i]); err != nil {
					if e.store.failed() != nil {
						return err
					}
					fail(c.q, i, err)
				}
				if results[i].Outcome == engine.Kept || results[i].Err != nil {
					p.see(c.q)
				}
			}
			return nil
		}, fail)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// PushAtomic keeps all messages or none, in one batch over all their queues.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	msgs, back := lend(ctx, msgs)
	results := make([]engine.PushResult, len(msgs))
	var refused error
	err := e.do(ctx, "push", func(now clock, p *pending) error {
		defer back()
		if err := e.space.check(e, now); err != nil {
			return &engine.Error{Op: "push", Err: err, Hint: noSpaceHint}
		}
		changes := make(map[string]*change)
		for i := range msgs {
			changes[msgs[i].Queue] = nil
		}
		queues, err := e.lockQueues(slices.Collect(maps.Keys(changes)))
		if err != nil {
			return err
		}
		defer unlock(queues)
		cs := e.begin(len(queues), len(msgs))
		for _, q := range queues {
			now, err := q.catchUp(now, p)
			if err != nil {
				cs.abandon()
				return err
			}
			changes[q.name] = cs.add(q, now, len(msgs))
		}
		for i := range msgs {
			r, err := changes[msgs[i].Queue].push(&msgs[i])
			if results[i] = r; err == nil && r.Err == nil {
				continue
			}
			for _, q := range queues {
				p.see(q)
			}
			cs.abandon()
			if err == nil {
				refused = r.Err
				for j := range results {
					results[j] = engine.PushResult{Err: r.Err}
				}
				results[i] = r
			}
			return err
		}
		for _, q := range queues {
			p.see(q) // some may only have been kept
		}
		return cs.commit(p)
	})
	if err != nil {
		return nil, err
	}
	return results, refused
}

// push decides one message. The error beside the result ends the whole call.
func (c *change) push(m *engine.Message) (engine.PushResult, error) {
	var was *memory
	if m.Key != "" {
		ref, err := c.holder(m.Key)
		if err != nil {
			return engine.PushResult{}, err
		}
		if ref.id != 0 {
			return c.meet(m, ref)
		}
		if was = ref.memory; was.holds(c.now.ms) && (m.OnConflict == engine.Reject || m.OnConflict == engine.Keep) {
			return c.recalled(m, was), nil
		}
	}
	if err := c.refusePending(m.Key); err != nil {
		return engine.PushResult{Err: err}, nil
	}
	if !c.claim() {
		return engine.PushResult{Err: engine.Refuse("push", engine.Ref{Queue: m.Queue, Key: m.Key}, engine.ErrLimit)}, nil
	}
	id, err := c.q.e.newID()
	if err != nil {
		return engine.PushResult{}, err
	}
	r := &record{id: id, created: c.now.ms, key: m.Key, Policy: m.Resolve(c.q.defaults())}
	r.setDue(m.Due.Resolve(c.now.Time))
	if err := errors.Join(c.content(r, m.Content), c.forget(was), c.wait(r)); err != nil {
		return engine.PushResult{}, err
	}
	return c.result(engine.Created, r.id, r.due), nil
}

// claim takes a place under MaxPending.
func (c *change) claim() bool {
	e := c.q.e
	if e.cfg.MaxPending <= 0 {
		return true
	}
	if e.live.Add(1) > e.cfg.MaxPending {
		e.live.Add(-1)
		return false
	}
	c.claimed++
	return true
}

// holder returns the live message that holds a key, or the memory of one that did; one
// past its expiry is dropped, a lease that is over is ended, and an id of 0 means nobody.
func (c *change) holder(key string) (keyRef, error) {
	ref, err := c.key(key)
	if err != nil || ref.id == 0 {
		return ref, err
	}
	if c.held(ref.id) != nil {
		if l, err := c.leased(ref.id); err != nil || l != nil {
			return ref, err
		}
		if ref, err = c.key(key); err != nil { // it may have died
			return ref, err
		}
	}
	if ref.id == 0 || !ref.expires {
		return ref, nil
	}
	r, err := c.message(ref.id)
	if err != nil {
		return ref, err
	}
	if r == nil || !r.expired(c.now.ms) {
		return ref, nil
	}
	return keyRef{memory: r.memory(engine.Expired, r.expires, c.now.ms)}, c.expire(r)
}

// expire drops a waiting message that is past its expiry.
func (c *change) expire(r *record) error {
	c.expired++
	return errors.Join(c.dequeue(r.position()), c.finish(r, engine.Expired, r.expires))
}

// meet applies the conflict policy of a message whose key is held.
func (c *change) meet(m *engine.Message, ref keyRef) (engine.PushResult, error) {
	held := c.result(0, ref.id, ref.due)
	at := engine.Ref{Queue: m.Queue, Key: m.Key}
	switch m.OnConflict {
	case engine.Keep:
		held.Outcome = engine.Kept
		return held, nil
	case engine.Replace, engine.KeepDue, engine.Rearm:
		if held.State == engine.Leased {
			held.Err = engine.Refuse("push", at, engine.ErrLeased)
			return held, nil
		}
	default:
		held.Err = engine.Refuse("push", at, engine.ErrExists)
		return held, nil
	}
	r, err := c.message(ref.id)
	switch {
	case errors.Is(err, codec.ErrMalformed), err == nil && r == nil:
		held.Err = &engine.Error{Op: "push", Queue: m.Queue, ID: ref.id, Key: m.Key,
			Err: errors.Join(codec.ErrMalformed, err), Hint: "the message cannot be read; cancel it by its id"}
		return held, nil
	case err != nil:
		return engine.PushResult{}, err
	}
	due := m.Due.Resolve(c.now.Time)
	if m.OnConflict == engine.KeepDue {
		due = r.due
	}
	err = c.dequeue(r.position())
	if m.OnConflict != engine.Rearm {
		r.Policy = m.Resolve(c.q.defaults())
		err = errors.Join(err, c.content(r, m.Content))
	}
	r.setDue(due)
	r.attempt, r.lapsed = 0, false
	if err := errors.Join(err, c.wait(r)); err != nil {
		return engine.PushResult{}, err
	}
	return c.result(engine.Replaced, r.id, r.due), nil
}

func (c *change) result(o engine.Outcome, id engine.ID, due int64) engine.PushResult {
	r := engine.PushResult{Outcome: o, ID: id, Due: instant(due), State: waitingState(due, c.now.ms)}
	if c.held(id) != nil {
		r.State = engine.Leased
	}
	return r
}
