package diskengine

import (
	"errors"

	"github.com/tarryhq/tarry/engine"
)

// memory is what is left of a message that is gone and whose key is remembered. It
// stands in the place of who holds the key, so that a push finds either with one look,
// and in an order of its own by when it is forgotten.
type memory struct {
	id        engine.ID
	due       int64
	ending    engine.Ending
	ended     int64
	forgotten int64 // from then on the key is free
}

// holds reports whether there is a memory that is not over.
func (m *memory) holds(now int64) bool { return m != nil && now < m.forgotten }

func (m *memory) position() position { return position{m.forgotten, m.id} }

func (m *memory) info(queue, key string) engine.Info {
	return engine.Info{
		ID: m.id, Queue: queue, Key: key, State: engine.Finished, Due: instant(m.due),
		Ending: m.ending, Ended: instant(m.ended), Forgotten: instant(m.forgotten),
	}
}

// memory is what is to be remembered of a message that ends, or nil.
func (r *record) memory(how engine.Ending, ended, now int64) *memory {
	if forgotten := ended + millis(r.Remember); r.remembered() && now < forgotten {
		return &memory{r.id, r.due, how, ended, forgotten}
	}
	return nil
}

func (r *record) remembered() bool { return r.key != "" && r.Remember > 0 }

// finish removes a message that is in no order any more, and remembers its key if that
// is to be.
func (c *change) finish(r *record, how engine.Ending, ended int64) error {
	m := r.memory(how, ended, c.now.ms)
	if m == nil {
		return c.remove(r.id, r.key, r.apart)
	}
	c.counts.finished++
	c.forgets = min(c.forgets, m.forgotten)
	err := errors.Join(c.remove(r.id, "", r.apart), c.name(r.key, keyRef{memory: m}))
	c.buf = timeKey(c.buf[:0], kindForget, c.q.num, m.position())
	return errors.Join(err, c.set(c.buf, []byte(r.key)))
}

// forget takes a memory, if there is one, out of its order; its key is freed or given
// to another then.
func (c *change) forget(m *memory) error {
	if m == nil {
		return nil
	}
	c.counts.finished--
	c.buf = timeKey(c.buf[:0], kindForget, c.q.num, m.position())
	return c.delete(c.buf)
}

// recalled is the answer to a push that meets a memory, which ends it.
func (c *change) recalled(m *engine.Message, of *memory) engine.PushResult {
	r := engine.PushResult{ID: of.id, Due: instant(of.due), State: engine.Finished, Ending: of.ending, Ended: instant(of.ended)}
	if m.OnConflict == engine.Keep {
		r.Outcome = engine.Kept
	} else {
		r.Err = engine.RefuseFinished(engine.Ref{Queue: m.Queue, ID: of.id, Key: m.Key}, of.ending, r.Ended)
	}
	return r
}

// forgetOver forgets what is over, at most so many, the first ones first.
func (c *change) forgetOver(most int) error {
	q := c.q
	type over struct {
		position
		key string
	}
	var chunk []over
	next := int64(forGood)
	lower := timeKey(nil, kindForget, q.num, position{at: q.forgets})
	err := scan(q.e.store.db, lower, upperBound(lower[:headLen]), func(k, v []byte) (bool, error) {
		_, p, err := parseTimeKey(k, kindForget)
		if err == nil && (p.at > c.now.ms || len(chunk) == most) {
			next = p.at
			return false, nil
		}
		chunk = append(chunk, over{p, string(v)})
		return true, err
	})
	for _, o := range chunk {
		err = errors.Join(err, c.forget(&memory{id: o.id, forgotten: o.at}), c.free(o.key))
	}
	c.forgets = next
	return err
}

// purgeFinished forgets the next memories, whenever they would be.
func (s *sweep) purgeFinished(now clock, p *pending) (n int64, err error) {
	chunk, err := s.next()
	if err != nil {
		return 0, err
	}
	err = s.q.changeEach(now, p, chunk, func(c *change, at position) error {
		var key string
		there, err := s.q.e.store.get(s.q.e.store.db, timeKey(nil, kindForget, s.q.num, at), func(v []byte) error {
			key = string(v)
			return nil
		})
		if err != nil || !there {
			return err
		}
		if at.at > now.ms {
			n++
		}
		return errors.Join(c.forget(&memory{id: at.id, forgotten: at.at}), c.free(key))
	})
	return n, err
}
