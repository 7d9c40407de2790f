package diskengine

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

const (
	// lapseChunk is how many leases end in one batch, and so while others wait for
	// the queue's lock.
	lapseChunk = 256

	// lapseMost is about how many leases a Lease ends before it hands out what is
	// ready and says that there is more. The loader ends the others meanwhile.
	lapseMost = 16 * lapseChunk

	// lapseAgain is after how long a lease is looked at again whose message lies in
	// a damaged part of the disk, in milliseconds.
	lapseAgain = 60_000
)

// lapse ends a chunk of the leases whose deadline has passed, in one batch, and
// reports whether that was all of them. When it fails nothing is changed.
func (q *queue) lapse(now clock, p *pending) (done bool, err error) {
	over := q.leases.over(now.ms, lapseChunk)
	if len(over) == 0 {
		return true, nil
	}
	again := over
	defer func() {
		for _, l := range again {
			q.leases.wind(l, l.deadline)
		}
	}()
	places := make([]place, len(over))
	for i, l := range over {
		places[i] = place{q, l.id}
	}
	read, err := q.e.readMany(places)
	if err != nil {
		return false, err
	}
	c := q.begin(now, 1)
	if len(over) > 1 {
		c.to.split()
	}
	var torn []*lease
	for i, l := range over {
		err := read[i].err
		if pebble.IsCorruptionError(err) {
			q.e.damaged(q, l.id, err)
			torn = append(torn, l)
			continue
		}
		if err := c.lapsed(l, read[i].record, err); err != nil {
			c.abandon()
			return false, err
		}
	}
	if err := c.commit(p); err != nil {
		return false, err
	}
	again = nil
	for _, l := range torn { // it may be readable in better times, and stops nobody
		q.leases.wind(l, now.ms+lapseAgain)
	}
	return !q.leases.late(now.ms), nil
}

// lapse ends one lease whose deadline has passed, within a change that goes on with
// its message.
func (c *change) lapse(l *lease) error {
	c.remember()
	r, err := c.message(l.id)
	return c.lapsed(l, r, err)
}

// lapsed ends a lease whose deadline has passed, given what reading its message
// brought: that waits again, or is dead when its attempts are used up.
func (c *change) lapsed(l *lease, r *record, err error) error {
	switch {
	case err != nil && !errors.Is(err, codec.ErrMalformed):
		return err
	case err == nil && r == nil:
		err = errNoRecord
	}
	c.endLease(l)
	if err != nil {
		c.q.e.damaged(c.q, l.id, err)
		return nil
	}
	r.attempt, r.lastError = l.attempt, engine.Lapsed
	r.lapsed, r.token = true, l.token
	if r.attempt < r.MaxAttempts {
		return c.wait(r)
	}
	c.died++
	return c.bury(r, l.deadline, true)
}

// held returns the lease of a message, also one whose deadline has passed, or nil.
func (c *change) held(id engine.ID) *lease {
	if l, ok := c.leases[id]; ok {
		return l
	}
	return c.q.leases.byID[id]
}

// leased returns the lease of a message, or nil. One whose deadline has passed is
// ended.
func (c *change) leased(id engine.ID) (*lease, error) {
	l := c.held(id)
	if l == nil || l.deadline > c.now.ms {
		return l, nil
	}
	return nil, c.lapse(l)
}

// over reports whether a message has a lease whose deadline has passed.
func (q *queue) over(id engine.ID, now int64) bool {
	l := q.leases.byID[id]
	return l != nil && l.deadline <= now
}

// lapseOne ends the lease of a message, which is over.
func (q *queue) lapseOne(id engine.ID, now clock, p *pending) error {
	c := q.begin(now, 1)
	if _, err := c.leased(id); err != nil {
		c.abandon()
		return err
	}
	return c.commit(p)
}

// lockWhole locks a queue and brings it up to date, with all leases ended that are
// over. When there are many others get at the queue in between. The caller unlocks.
func (q *queue) lockWhole(ctx context.Context, now clock, p *pending) (clock, error) {
	for {
		q.mu.Lock()
		idle := q.idle // who only looks does not keep a queue from being forgotten
		now, err := q.catchUp(now, p)
		if q.idle = idle; err == nil {
			err = ctx.Err()
		}
		if err != nil || !q.leases.late(now.ms) {
			return now, err
		}
		q.mu.Unlock()
		if len(p.batches) < lapseMost/lapseChunk {
			continue
		}
		if err := p.wait(); err != nil { // batches take up memory until they are synced
			q.mu.Lock()
			return now, err
		}
	}
}

// lapseLate ends a chunk of leases on behalf of nobody.
func (q *queue) lapseLate(now clock) error {
	return q.forNobody(func(p *pending) error {
		done, err := q.lapse(now, p)
		if !done && err == nil {
			q.e.kick(q)
		}
		return err
	})
}

// endLate ends leases that are over, for some chunks, so that what they held is
// ready in its place. Others get at the queue in between.
func (q *queue) endLate(now clock, p *pending) error {
	for range lapseMost / lapseChunk {
		q.mu.Lock()
		late := q.leases.late(now.ms)
		var err error
		if late {
			_, err = q.lapse(now, p)
		}
		q.mu.Unlock()
		if err != nil || !late {
			return err
		}
	}
	return nil
}
