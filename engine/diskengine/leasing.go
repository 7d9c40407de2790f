package diskengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// leasing is a call of Lease under way.
type leasing struct {
	e     *Engine
	now   clock
	wants []engine.Want
	grant *engine.Grant

	served bool
	alone  []share // what is served by itself
	remote pending // what leases of other processes have to wait for
	local  pending // what nobody waits for, but for what was seen
}

// run serves the wants. Those of many queues share a batch; a queue that is heavy, or
// shared one in which something could not be read, is served by itself, so that others
// neither wait for it nor fail with it.
func (l *leasing) run(ctx context.Context) error {
	l.remote.store, l.local.store = l.e.store, l.e.store
	shares, err := l.e.shares(len(l.wants), func(i int) *queue {
		if l.grant.Queues[i].Err = l.wants[i].Check(); l.grant.Queues[i].Err != nil {
			return nil
		}
		return l.e.byName[l.wants[i].Queue]
	}, noQueue)
	if err != nil {
		return err
	}
	for len(shares) > 0 {
		var more []share // further wants of a queue get what the first leaves
		for i := range shares {
			if s := &shares[i]; len(s.items) > 1 {
				more = append(more, share{q: s.q, items: s.items[1:]})
				s.items = s.items[:1]
			}
		}
		if err := l.e.joint(shares, func(shares []share) error { return l.serve(ctx, shares, false) }); err != nil {
			return err
		}
		for i := range l.alone {
			if err := l.serveAlone(ctx, l.alone[i:i+1]); err != nil {
				return err
			}
		}
		shares, l.alone = more, l.alone[:0]
	}
	return nil
}

func (l *leasing) serveAlone(ctx context.Context, one []share) error {
	q := one[0].q
	err := ctx.Err() // nobody waits for it any more
	if err == nil {
		err = q.endLate(l.now, l.pending(one))
	}
	if err == nil {
		err = q.prepare(l.now.ms)
	}
	if err != nil {
		l.fail(one[0], err)
		return l.e.store.failed()
	}
	return l.e.joint(one, func(one []share) error { return l.serve(ctx, one, true) })
}

// pending is what is written for some queues, which is waited for with what any lease
// of another process has to wait for.
func (l *leasing) pending(shares []share) *pending {
	for _, s := range shares {
		if l.wants[s.items[0]].Remote {
			return &l.remote
		}
	}
	return &l.local
}

// leave leaves to p what is to be waited for, and to the tail what is not.
func (l *leasing) leave(p *pending) {
	p.batches = l.remote.batches
	p.sees = max(l.remote.sees, l.local.sees)
	p.hints = append(l.remote.hints, l.local.hints...)
	for _, a := range l.local.batches {
		l.e.tail <- a
	}
}

// fail has a want fail, which has leased nothing.
func (l *leasing) fail(s share, err error) {
	i := s.items[0]
	l.grant.Queues[i] = engine.Granted{Err: &engine.Error{Op: "lease", Queue: l.wants[i].Queue, Err: err}}
}

// serve serves the wants of some queues, which are locked, in one batch.
func (l *leasing) serve(ctx context.Context, shares []share, alone bool) error {
	if err := ctx.Err(); err != nil && l.served {
		for _, s := range shares {
			l.fail(s, err)
		}
		return nil
	}
	l.served = true
	p := l.pending(shares)
	hinted := len(p.hints)
	most := 0
	for _, s := range shares {
		most += l.wants[s.items[0]].Max
	}
	cs := l.e.begin(len(shares), most)
	turns := make([]turn, 0, len(shares))
	for _, s := range shares {
		if !alone && s.q.leases.late(l.now.ms) {
			l.alone = append(l.alone, s)
			continue
		}
		now, err := s.q.catchUp(l.now, p)
		paused := s.q.paused(now.ms)
		switch {
		case err != nil || paused:
		case alone:
			err = s.q.fill(now.ms)
		case s.q.reads(now.ms):
			l.alone = append(l.alone, s)
			continue
		}
		if err != nil {
			if l.fail(s, err); l.e.store.failed() == nil {
				continue
			}
			cs.abandon()
			return err
		}
		if at := instant(now.ms); at.After(l.grant.Now) {
			l.grant.Now = at
		}
		i := s.items[0]
		turns = append(turns, turn{share: s, c: cs.add(s.q, now, 1), now: now, paused: paused, grantable: s.q.grantable(now), w: &l.wants[i], g: &l.grant.Queues[i]})
	}
	err := pick(turns)
	for i, bytes, expired := 0, 0, 0; i < len(turns) && err == nil; i++ {
		if bytes >= engine.AnswerBytes || expired >= expireMost { // enough while all are locked
			for _, t := range turns[i:] {
				t.undo()
				l.alone = append(l.alone, t.share)
			}
			turns = turns[:i]
			break
		}
		err = turns[i].take(p)
		bytes, expired = bytes+turns[i].bytes, expired+turns[i].expired
	}
	if err != nil {
		cs.abandon()
		for i := range turns {
			if turns[i].undo(); alone {
				l.fail(turns[i].share, err)
			} else {
				l.alone = append(l.alone, turns[i].share)
			}
		}
		return l.e.store.failed()
	}
	if err := cs.commit(p); err != nil {
		return err
	}
	p.hints = p.hints[:hinted] // the answers say it all
	for i := range turns {
		turns[i].answer()
	}
	return nil
}

// turn is one want of a queue that is locked.
type turn struct {
	share
	c      *change
	now    clock
	paused bool
	w      *engine.Want
	g      *engine.Granted

	grantable int  // how many messages the settings let be leased
	held      bool // there are more

	taken   []slot        // out of memory
	read    []messageRead // of the first or the last of them
	bytes   int           // of bodies leased
	expired int
}

// readMost is how many records are read at a time.
const readMost = 4096

// room is how many messages more a want takes at a time.
func (t *turn) room() int {
	if t.paused || t.bytes >= engine.AnswerBytes {
		return 0
	}
	if left := t.grantable - len(t.g.Messages); left > 0 {
		return min(left, t.w.Max-len(t.g.Messages), readMost)
	}
	if t.held {
		return 0
	}
	return 1 // to see whether it is held back
}

// pick takes for each turn what is ready out of memory, or the first of it where there are
// many, and reads all that together.
func pick(turns []turn) error {
	var all []slot
	var places []place
	for i := range turns {
		t := &turns[i]
		from := len(all)
		all = t.q.near.take(min(t.room(), max(1, readMost/len(turns))), all)
		t.taken = all[from:len(all):len(all)]
		places = appendPlaces(places, t.q, t.taken)
	}
	if len(all) == 0 {
		return nil
	}
	read, err := turns[0].q.e.readMany(places)
	if err != nil {
		return err
	}
	for i := range turns {
		n := len(turns[i].taken)
		turns[i].read, read = read[:n], read[n:]
	}
	return nil
}

func appendPlaces(places []place, q *queue, slots []slot) []place {
	places = slices.Grow(places, len(slots))
	for i := range slots {
		places = append(places, place{q, slots[i].id})
	}
	return places
}

// take leases what is due for the want, beginning with what has been picked.
func (t *turn) take(p *pending) (err error) {
	for heads := t.taken; len(heads) > 0; {
		if err = t.give(heads, p); err != nil {
			return err
		}
		if t.expired = t.c.expired; t.expired >= expireMost {
			return nil
		}
		if !t.c.whole() {
			if err = t.q.fill(t.now.ms); err != nil {
				return err
			}
		}
		heads = t.q.near.take(t.room(), nil)
		t.taken = append(t.taken, heads...)
		if t.read, err = t.q.e.readMany(appendPlaces(nil, t.q, heads)); err != nil {
			return err
		}
	}
	return nil
}

// undo puts back what was taken.
func (t *turn) undo() {
	for _, s := range t.taken {
		t.q.near.put(s.position, s.priority, s.seq)
	}
	t.g.Messages = nil
}

// give leases what was taken out of memory and read.
func (t *turn) give(heads []slot, p *pending) error {
	c, q := t.c, t.q
	t.g.Messages = slices.Grow(t.g.Messages, len(heads))
	for i, h := range heads {
		if t.bytes >= engine.AnswerBytes {
			q.near.put(h.position, h.priority, h.seq)
			continue
		}
		r, err := t.read[i].record, t.read[i].err
		held := len(t.g.Messages) >= t.grantable
		if err == nil && r != nil && !r.expired(t.now.ms) && !held {
			err = q.readBody(q.e.store.db, r)
		}
		switch {
		case isDamage(err):
			q.e.damaged(q, h.id, err)
			continue
		case err != nil:
		case r == nil || r.dead || r.due != h.at:
			q.e.damaged(q, h.id, errNowhere)
			err = c.dequeue(h.position)
		case r.expired(t.now.ms):
			err = c.expire(r)
		case held:
			t.held = true
			q.near.put(h.position, h.priority, h.seq)
		default:
			t.bytes += len(r.Body)
			p.sees = max(p.sees, h.seq)
			var l engine.Lease
			l, err = c.handOut(r, t.w, true)
			t.g.Messages = append(t.g.Messages, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answer tells, once the batch has been applied, what else the queue has.
func (t *turn) answer() {
	q, g := t.q, t.g
	q.tell(g)
	if t.paused {
		q.told = q.pause
		if q.pause != forGood {
			g.NextDue = instant(q.pause)
		}
		return
	}
	q.granted(len(g.Messages))
	if g.More = len(q.near.ready) > 0 && !t.held || t.expired >= expireMost || q.leases.late(t.now.ms); g.More {
		q.told = forGood // somebody else may have been told otherwise
		return
	}
	next := int64(forGood)
	if at, ok := q.near.next(); ok {
		next = at
	} else if t.held && !q.whole() { // what is held back kept the next one from being read
		if next = q.loadedTo.at; next <= t.now.ms {
			next = t.now.ms + horizon
		}
	}
	if at, ok := q.leases.next(); ok {
		next = min(next, at)
	}
	q.told = next
	if g.Held = t.held; t.held {
		q.rules.held = q.places(t.now) == 0
		if q.passes(t.now) == 0 {
			next = min(next, q.gathers())
			q.told = never // nothing comes sooner, whatever is put
		}
	}
	if next != forGood {
		g.NextDue = instant(next)
	}
}
