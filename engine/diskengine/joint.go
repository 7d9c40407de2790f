package diskengine

import (
	"cmp"
	"slices"
)

// share is what a call has to do in one queue.
type share struct {
	q     *queue
	name  string // of a queue that is made again when it is gone; else a queue that is gone is an empty one
	items []int
	bytes int // about what is written for them, where that may be much
}

const (
	// jointQueues is how many queues one batch changes, whose locks are held meanwhile,
	// and jointBytes about how many bytes of content go into one that changes several.
	jointQueues = 128
	jointBytes  = 1 << 20
)

// shares gathers the n items of a call by their queues, in the order of the queues'
// numbers: neighbours on disk are read and written faster. known looks an item's queue up
// in the maps of the engine, which are locked; where it finds none, missing may give one.
func (e *Engine) shares(n int, known func(i int) *queue, missing func(i int) (*queue, error)) ([]share, error) {
	type member struct {
		q     *queue
		place uint64 // the queue's number, then i
		i     int
	}
	members, several := make([]member, n), false
	e.queuesMu.RLock()
	for i := range members {
		members[i] = member{q: known(i), i: i}
		several = several || members[i].q != members[0].q
	}
	e.queuesMu.RUnlock()
	for i := range members {
		if m := &members[i]; m.q == nil {
			var err error
			if m.q, err = missing(i); err != nil {
				return nil, err
			}
			several = several || m.q != members[0].q
		}
	}
	queues := 1
	if several {
		members = slices.DeleteFunc(members, func(m member) bool { return m.q == nil })
		for i := range members {
			m := &members[i]
			m.place = uint64(m.q.num)<<32 | uint64(m.i)
		}
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.place, b.place) })
		for i := 1; i < len(members); i++ {
			if members[i].q != members[i-1].q {
				queues++
			}
		}
	}
	if len(members) == 0 || members[0].q == nil {
		return nil, nil
	}
	shares, items := make([]share, 0, queues), make([]int, 0, len(members))
	for from := 0; from < len(members); {
		q, first := members[from].q, len(items)
		for ; from < len(members) && members[from].q == q; from++ {
			items = append(items, members[from].i)
		}
		shares = append(shares, share{q: q, items: items[first:len(items):len(items)]})
	}
	return shares, nil
}

// noQueue stands for none.
func noQueue(int) (*queue, error) { return nil, nil }

// joint calls fn with some shares after the other, whose queues are locked, until it
// has seen all of them.
func (e *Engine) joint(shares []share, fn func(shares []share) error) error {
	for len(shares) > 0 {
		n, err := e.lockFree(shares)
		if err != nil {
			return err
		}
		if err := unlockAfter(shares[:n], fn); err != nil {
			return err
		}
		shares = shares[n:]
	}
	return nil
}

func unlockAfter(shares []share, fn func(shares []share) error) error {
	defer func() {
		for i := range shares {
			shares[i].q.mu.Unlock()
		}
	}()
	return fn(shares)
}

// lockFree locks the first queue, and of those after it some whose locks are free,
// which it moves to the front. It returns how many. As nobody waits here for one lock
// while he holds another, their order does not matter, and a queue that is slow holds
// up no other.
func (e *Engine) lockFree(shares []share) (int, error) {
	first := &shares[0]
	if first.q.mu.Lock(); first.q.gone && first.name != "" {
		first.q.mu.Unlock()
		var err error
		if first.q, err = e.lockQueue(first.name); err != nil {
			return 0, err
		}
	}
	n, bytes := 1, first.bytes
	for i := 1; i < min(len(shares), jointQueues); i++ {
		s := &shares[i]
		if bytes += s.bytes; bytes > jointBytes {
			break
		}
		if !s.q.mu.TryLock() {
			continue
		}
		if s.q.gone && s.name != "" {
			s.q.mu.Unlock()
			continue
		}
		shares[n], shares[i] = shares[i], shares[n]
		n++
	}
	return n, nil
}

// changes are changes of several queues, which are locked, in one batch.
type changes struct {
	e  *Engine
	to writes
	of []*change
}

// begin starts a change of each of several queues by so many items in all.
func (e *Engine) begin(queues, items int) *changes {
	cs := &changes{e: e, of: make([]*change, 0, queues)}
	cs.to.begin(e.store.db)
	if items > 1 {
		cs.to.split()
	}
	return cs
}

// add joins a change of a queue by about so many items.
func (cs *changes) add(q *queue, now clock, items int) *change {
	c := q.fresh(now)
	c.to = &cs.to
	if items > 1 {
		c.remember()
	}
	cs.of = append(cs.of, c)
	return c
}

func (cs *changes) commit(p *pending) error { return commit(cs.e.store, &cs.to, cs.of, p) }

func (cs *changes) abandon() { abandon(&cs.to, cs.of) }

// changeAll makes few batches of what fn does to several queues, each up to date with
// the clock. When fn fails nothing is done of its batch, and what it was called for
// ends. A queue that cannot be brought up to date fails alone, and fail is told.
func (e *Engine) changeAll(now clock, p *pending, shares []share, fn func(c *change, items []int) error, fail func(q *queue, i int, err error)) error {
	return e.joint(shares, func(shares []share) error {
		items := 0
		for i := range shares {
			items += len(shares[i].items)
		}
		cs := e.begin(len(shares), items)
		for _, s := range shares {
			now, err := s.q.catchUp(now, p)
			if err == nil {
				err = fn(cs.add(s.q, now, len(s.items)), s.items)
			} else if e.store.failed() == nil {
				for _, i := range s.items {
					fail(s.q, i, err)
				}
				continue
			}
			if err != nil {
				cs.abandon()
				return err
			}
		}
		return cs.commit(p)
	})
}
