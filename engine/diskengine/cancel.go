package diskengine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Cancel removes messages. Those of many queues share few batches.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	refs = slices.Clone(refs)
	results := make([]error, len(refs))
	err := e.do(ctx, "cancel", func(now clock, p *pending) error {
		fail := func(_ *queue, i int, err error) { results[i] = engine.Refuse("cancel", refs[i], err) }
		shares, err := e.shares(len(refs), func(i int) *queue { return e.byName[refs[i].Queue] }, func(i int) (*queue, error) {
			fail(nil, i, engine.ErrNotFound)
			return nil, nil
		})
		if err != nil {
			return err
		}
		var lost map[*queue]map[engine.ID]position
		err = e.changeAll(now, p, shares, func(c *change, items []int) error {
			for _, i := range items {
				if results[i] = refs[i].Check("cancel"); results[i] != nil {
					continue
				}
				err := c.cancel(refs[i])
				if failure := e.store.failed(); failure != nil {
					return failure
				}
				if err != nil {
					p.see(c.q)
					fail(c.q, i, err)
				}
			}
			if c.lost != nil {
				if lost == nil {
					lost = make(map[*queue]map[engine.ID]position)
				}
				lost[c.q] = c.lost
			}
			return nil
		}, fail)
		for q, ids := range lost {
			if err != nil {
				break
			}
			failure := q.removeLost(now, p, ids)
			if err = e.store.failed(); failure == nil || err != nil {
				continue
			}
			for i := range refs {
				if _, ok := ids[refs[i].ID]; ok && refs[i].Queue == q.name && results[i] == nil {
					fail(q, i, failure)
				}
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// cancel removes one message.
func (c *change) cancel(ref engine.Ref) error {
	if ref.ID == 0 {
		return c.cancelKey(ref)
	}
	if l, err := c.leased(ref.ID); err != nil {
		return err
	} else if l != nil {
		return cmp.Or(engine.RefuseState("cancel", ref, engine.Leased), engine.ErrLeased)
	}
	r, err := c.message(ref.ID)
	switch {
	case isDamage(err) && ref.IfState == engine.Gone:
		// Its grave, or its due entry when it has no key, stays behind; whoever
		// meets them finds that they lead nowhere.
		c.lose(ref.ID, position{})
		return nil
	case err != nil:
		return err
	case r == nil || c.q.decayed(r, c.now):
		return engine.ErrNotFound
	case r.expired(c.now.ms):
		return errors.Join(engine.ErrNotFound, c.expire(r))
	}
	if err := engine.RefuseState("cancel", ref, r.state(c.now.ms)); err != nil {
		return err
	}
	if r.dead {
		return errors.Join(c.exhume(r), c.remove(r.id, "", r.apart))
	}
	return errors.Join(c.dequeue(r.position()), c.finish(r, engine.Cancelled, c.now.ms))
}

// cancelKey removes the live message that holds a key, mostly without reading it.
func (c *change) cancelKey(ref engine.Ref) error {
	k, err := c.holder(ref.Key)
	switch {
	case err != nil:
		return err
	case k.id == 0:
		return engine.ErrNotFound
	}
	if c.held(k.id) != nil {
		return cmp.Or(engine.RefuseState("cancel", ref, engine.Leased), engine.ErrLeased)
	}
	if err := engine.RefuseState("cancel", ref, waitingState(k.due, c.now.ms)); err != nil {
		return err
	}
	if k.remembers {
		if r, err := c.message(k.id); err == nil && r != nil {
			return errors.Join(c.dequeue(r.position()), c.finish(r, engine.Cancelled, c.now.ms))
		} else if err != nil && !isDamage(err) {
			return err
		}
	}
	return errors.Join(c.dequeue(position{k.due, k.id}), c.remove(k.id, ref.Key, k.apart))
}

// Reschedule moves the due time of a message that waits. The Info answered lacks
// a body that is kept apart.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	if err := ref.Check("reschedule"); err != nil {
		return engine.Info{}, err
	}
	var info engine.Info
	err := e.do(ctx, "reschedule", func(now clock, p *pending) error {
		q := e.queue(ref.Queue)
		if q == nil {
			return engine.Refuse("reschedule", ref, engine.ErrNotFound)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		now, err := q.catchUp(now, p)
		if err != nil {
			return err
		}
		p.see(q)
		c := q.begin(now, 1)
		r, err := c.find("reschedule", ref)
		if err != nil {
			return errors.Join(err, c.commit(p)) // what expired is gone all the same
		}
		err = c.dequeue(r.position())
		forever := r.expires == never // as a redriven message lives
		r.setDue(due.Resolve(now.Time))
		if forever {
			r.expires = never
		}
		r.attempt, r.lapsed = 0, false
		if err := errors.Join(err, c.wait(r)); err != nil {
			c.abandon()
			return err
		}
		info = r.info(q.name, now.ms)
		return c.commit(p)
	})
	if err != nil {
		return engine.Info{}, err
	}
	return info, nil
}

// Get looks a message up.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	if err := ref.Check("get"); err != nil {
		return engine.Info{}, err
	}
	var info engine.Info
	err := e.do(ctx, "get", func(now clock, p *pending) error {
		q := e.queue(ref.Queue)
		if q == nil {
			return engine.Refuse("get", ref, engine.ErrNotFound)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		now, err := q.catchUp(now, p)
		if err != nil {
			return err
		}
		r, m, err := q.look(ref, now)
		if err == nil && r != nil && q.over(r.id, now.ms) {
			if err = q.lapseOne(r.id, now, p); err == nil {
				r, m, err = q.look(ref, now)
			}
		}
		p.see(q)
		switch {
		case err != nil:
			return engine.Refuse("get", ref, err)
		case m != nil:
			info = m.info(q.name, ref.Key)
		case r != nil:
			info = q.show(r, now.ms)
		default:
			return engine.Refuse("get", ref, engine.ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return engine.Info{}, err
	}
	return info, nil
}

// show describes a message as it stands.
func (q *queue) show(r *record, now int64) engine.Info {
	if l := q.leases.byID[r.id]; l != nil {
		return q.leasedInfo(r, l, now)
	}
	return r.info(q.name, now)
}

// look reads what ref names, with its body: by key the live one, else the memory of one,
// else the newest dead one. It changes nothing; one past its expiry is not there.
func (q *queue) look(ref engine.Ref, now clock) (*record, *memory, error) {
	db := q.e.store.db
	there := func(id engine.ID) (r *record, gone bool, err error) {
		r, err = q.readMessage(db, id, true)
		return r, r == nil || q.leases.byID[id] == nil && (r.expired(now.ms) || q.decayed(r, now)), err
	}
	id := ref.ID
	if id == 0 {
		var k keyRef
		_, err := q.e.store.get(db, nameKey(nil, q.num, ref.Key), func(v []byte) (err error) {
			k, err = parseKeyRef(v)
			return err
		})
		if err == nil && k.id != 0 {
			r, gone, err := there(k.id)
			if err != nil || !gone {
				return r, nil, err
			}
			if r != nil {
				k.memory = r.memory(engine.Expired, r.expires, now.ms)
			}
		}
		if err != nil || k.memory.holds(now.ms) {
			return nil, k.memory, err
		}
		if id, err = q.newestDead(ref.Key); err != nil || id == 0 {
			return nil, nil, err
		}
	}
	r, gone, err := there(id)
	if err != nil || gone {
		r = nil
	}
	return r, nil, err
}
