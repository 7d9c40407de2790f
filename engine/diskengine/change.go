package diskengine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
)

// change is one step of a queue under its lock: it looks, collects what is to be
// written in one batch, and changes memory when the batch has been applied. With
// many items in one call, later ones see what earlier ones did.
type change struct {
	q     *queue
	now   clock
	to    *writes
	alone writes // of a change that shares them with none
	wrote bool

	counts  counts // by how much they change
	claimed int64  // places under MaxPending that are taken already
	minutes []minuteCount
	ops     []nearOp
	named   []named
	mark    position
	tenures []tenure
	graves  position               // at or before the first grave, where there are rules
	yard    *graveyard             // where there may be only so many dead
	forgets int64                  // at or before the time at which the first memory is forgotten
	lapses  int64                  // the least deadline of new and extended leases
	remote  bool                   // leases are given to other processes
	expired int                    // dropped past their expiry
	died    int                    // lapsed into death
	lost    map[engine.ID]position // cannot be read, and are to be removed

	seen      // empty while nobody will look
	room seen // for that

	buf []byte // scratch for keys
	val []byte // scratch for values
}

type minuteCount struct{ minute, n int64 }

// seen is what later items see of what earlier ones did.
type seen struct {
	messages map[engine.ID]*record // nil: gone
	keys     map[string]keyRef     // id 0: gone
	leases   map[engine.ID]*lease  // nil: ended
}

// nearOp is a message put into due order or taken out of it.
type nearOp struct {
	position
	priority uint32
	put      bool
	taken    bool // out of memory already
}

// tenure is a lease that begins or is extended, or one that ends.
type tenure struct {
	*lease
	ends bool
}

// change makes one batch, of about so many items, of what fn does to a queue that is up
// to date with the clock. When fn fails nothing is done.
func (q *queue) change(now clock, p *pending, items int, fn func(c *change) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changeLocked(now, p, items, fn)
}

func (q *queue) changeLocked(now clock, p *pending, items int, fn func(c *change) error) error {
	now, err := q.catchUp(now, p)
	if err != nil {
		return err
	}
	c := q.begin(now, items)
	if err := fn(c); err != nil {
		c.abandon()
		return err
	}
	return c.commit(p)
}

// begin starts a change by about so many items.
func (q *queue) begin(now clock, items int) *change {
	c := q.fresh(now)
	c.to = &c.alone
	c.to.begin(q.e.store.db)
	if items > 1 {
		c.remember()
		c.to.split()
	}
	return c
}

// spare holds changes that have ended, for their memory.
var spare = sync.Pool{New: func() any { return new(change) }}

// fresh returns a change of a queue that has nothing to write to yet.
func (q *queue) fresh(now clock) *change {
	c := spare.Get().(*change)
	c.q, c.now, c.mark, c.forgets, c.lapses = q, now, q.mark, q.forgets, forGood
	if q.rules != nil {
		if c.graves = q.rules.graves; q.rules.DeadMax > 0 {
			c.tend()
		}
	}
	return c
}

// spareMost is how many items a change may have had whose memory is kept.
const spareMost = 2048

// end leaves the memory of a change to another one.
func (c *change) end() {
	if len(c.ops) > spareMost || len(c.named) > spareMost || len(c.tenures) > spareMost ||
		len(c.messages) > spareMost || cap(c.val) > 2*inlineBody {
		return
	}
	clear(c.named)
	clear(c.tenures)
	c.room.clear()
	*c = change{
		minutes: c.minutes[:0], ops: c.ops[:0], named: c.named[:0], tenures: c.tenures[:0],
		room: c.room, buf: c.buf, val: c.val,
	}
	spare.Put(c)
}

// remember lets what follows see what is done from here on.
func (c *change) remember() {
	if c.messages != nil {
		return
	}
	if c.room.messages == nil {
		c.room = seen{make(map[engine.ID]*record), make(map[string]keyRef), make(map[engine.ID]*lease)}
	}
	c.seen = c.room
}

func (s seen) clear() {
	clear(s.messages)
	clear(s.keys)
	clear(s.leases)
}

// key returns who holds a key, or the memory of who did.
func (c *change) key(key string) (keyRef, error) {
	if ref, ok := c.keys[key]; ok {
		return ref, nil
	}
	return c.q.names.holder(c.q, key)
}

// message returns a message without a body that stands apart, or nil.
func (c *change) message(id engine.ID) (*record, error) {
	if r, ok := c.messages[id]; ok {
		return r, nil
	}
	return c.q.readMessage(c.q.e.store.db, id, false)
}

// into returns the batch in which a key is written.
func (c *change) into(key []byte) *pebble.Batch {
	c.wrote = true
	return c.to.into(key)
}

func (c *change) set(key, value []byte) error { return c.into(key).Set(key, value, nil) }

func (c *change) delete(key []byte) error { return c.into(key).Delete(key, nil) }

// write stores a message's record.
func (c *change) write(r *record) error {
	if c.messages != nil {
		c.messages[r.id] = r
	}
	c.buf = idKey(c.buf[:0], kindMessage, c.q.num, r.id)
	c.val = r.append(c.val[:0])
	return c.set(c.buf, c.val)
}

// content gives a message its content, and a large body its own entry.
func (c *change) content(r *record, content engine.Content) error {
	was := r.apart
	r.Content, r.apart = content, len(content.Body) > inlineBody
	c.buf = idKey(c.buf[:0], kindBody, c.q.num, r.id)
	switch {
	case r.apart:
		return c.set(c.buf, r.Body)
	case was:
		return c.delete(c.buf)
	}
	return nil
}

// hold gives a message its key.
func (c *change) hold(r *record) error {
	if r.key == "" {
		return nil
	}
	return c.name(r.key, keyRef{id: r.id, due: r.due, apart: r.apart, expires: r.expires != never, remembers: r.Remember > 0})
}

// name writes what a key leads to.
func (c *change) name(key string, ref keyRef) error {
	if c.keys != nil {
		c.keys[key] = ref
	}
	c.named = append(c.named, named{key, ref})
	c.buf = nameKey(c.buf[:0], c.q.num, key)
	c.val = ref.append(c.val[:0])
	return c.set(c.buf, c.val)
}

func (c *change) free(key string) error {
	if key == "" {
		return nil
	}
	if c.keys != nil {
		c.keys[key] = keyRef{}
	}
	c.named = append(c.named, named{key: key})
	c.buf = nameKey(c.buf[:0], c.q.num, key)
	return c.delete(c.buf)
}

// wait writes a message that waits for its due time, and its key.
func (c *change) wait(r *record) error {
	r.dead = false
	err := errors.Join(c.write(r), c.hold(r))
	return errors.Join(err, c.enqueue(r.position(), r.Priority))
}

// enqueue puts a message into due order.
func (c *change) enqueue(p position, priority uint32) error {
	c.counts.waiting++
	c.minutes = append(c.minutes, minuteCount{minuteOf(p.at), 1})
	c.ops = append(c.ops, nearOp{position: p, priority: priority, put: true})
	if p.less(c.mark) {
		c.mark = p
		if p.at >= c.now.ms {
			c.mark = position{at: c.now.ms} // later pushes will hardly be due before now
		}
	}
	c.buf = timeKey(c.buf[:0], kindDue, c.q.num, p)
	c.val = binary.BigEndian.AppendUint32(c.val[:0], priority)
	return c.set(c.buf, c.val)
}

// dequeue takes a message out of due order.
func (c *change) dequeue(p position) error { return c.leave(nearOp{position: p}) }

// leave is dequeue, told whether memory holds the message.
func (c *change) leave(op nearOp) error {
	p := op.position
	c.counts.waiting--
	c.minutes = append(c.minutes, minuteCount{minuteOf(p.at), -1})
	c.ops = append(c.ops, op)
	c.buf = timeKey(c.buf[:0], kindDue, c.q.num, p)
	return c.delete(c.buf)
}

// remove deletes what a message leaves behind once it is in no order any more.
func (c *change) remove(id engine.ID, key string, apart bool) error {
	if c.messages != nil {
		c.messages[id] = nil
	}
	c.buf = idKey(c.buf[:0], kindMessage, c.q.num, id)
	err := c.delete(c.buf)
	if apart {
		c.buf[0] = kindBody
		err = errors.Join(err, c.delete(c.buf))
	}
	return errors.Join(err, c.free(key))
}

// drop removes a message that waits, and remembers nothing.
func (c *change) drop(r *record) error {
	return errors.Join(c.dequeue(r.position()), c.remove(r.id, r.key, r.apart))
}

func (c *change) tenure(l *lease, ends bool) {
	c.tenures = append(c.tenures, tenure{l, ends})
	if c.leases == nil {
		return
	}
	if c.leases[l.id] = l; ends {
		c.leases[l.id] = nil
	}
}

// lease writes a lease: a new one, or one that takes the place of another.
func (c *change) lease(l *lease) error {
	if c.held(l.id) == nil {
		c.counts.leased++
	}
	c.tenure(l, false)
	c.lapses = min(c.lapses, l.deadline)
	c.buf = idKey(c.buf[:0], kindLease, c.q.num, l.id)
	c.val = l.append(c.val[:0])
	return c.set(c.buf, c.val)
}

// endLease ends a lease.
func (c *change) endLease(l *lease) {
	c.counts.leased--
	c.tenure(l, true)
	c.buf = idKey(c.buf[:0], kindLease, c.q.num, l.id)
	_ = c.delete(c.buf) // a batch that cannot grow fails when it is applied
}

// bury makes a message dead that is in no order, and frees its key when it holds
// that: one that was dead before does not, and another may by now.
func (c *change) bury(r *record, died int64, holds bool) error {
	r.dead, r.died = true, died
	err := c.write(r)
	if holds {
		err = errors.Join(err, c.free(r.key))
	}
	c.counts.dead++
	if r.grave().less(c.graves) {
		c.graves = r.grave()
	}
	c.buf = timeKey(c.buf[:0], kindDead, c.q.num, r.grave())
	err = errors.Join(err, c.set(c.buf, nil))
	if r.key != "" {
		c.buf = deadNameKey(c.buf[:0], c.q.num, r.key, r.grave())
		err = errors.Join(err, c.set(c.buf, nil))
	}
	if c.yard != nil {
		c.yard.dig(r.grave())
	}
	c.makeRoom()
	return err
}

// exhume takes a dead message out of the order of deaths.
func (c *change) exhume(r *record) error {
	if c.yard != nil {
		c.yard.fill(r.grave())
	}
	c.counts.dead--
	c.buf = timeKey(c.buf[:0], kindDead, c.q.num, r.grave())
	err := c.delete(c.buf)
	if r.key != "" {
		c.buf = deadNameKey(c.buf[:0], c.q.num, r.key, r.grave())
		err = errors.Join(err, c.delete(c.buf))
	}
	return err
}

// seal writes what sums up the change.
func (c *change) seal() error {
	q := c.q
	var err error
	if c.counts != (counts{}) {
		total := q.counts.plus(c.counts)
		c.buf = appendHead(c.buf[:0], kindCounts, q.num)
		c.val = total.append(c.val[:0])
		err = c.set(c.buf, c.val)
	}
	if c.counts.finished != 0 || c.forgets != q.forgets {
		c.buf = appendHead(c.buf[:0], kindFinished, q.num)
		c.val = appendFinished(c.val[:0], q.counts.finished+c.counts.finished, c.forgets)
		err = errors.Join(err, c.set(c.buf, c.val))
	}
	slices.SortFunc(c.minutes, func(a, b minuteCount) int { return cmp.Compare(a.minute, b.minute) })
	for i := 0; i < len(c.minutes); {
		m := c.minutes[i]
		for i++; i < len(c.minutes) && c.minutes[i].minute == m.minute; i++ {
			m.n += c.minutes[i].n
		}
		if m.n != 0 {
			c.buf = minuteKey(c.buf[:0], q.num, m.minute)
			c.val = appendSum(c.val[:0], m.n)
			err = errors.Join(err, c.into(c.buf).Merge(c.buf, c.val, nil))
		}
	}
	if c.mark.less(q.mark) {
		c.buf = appendHead(c.buf[:0], kindMark, q.num)
		c.val = c.mark.append(c.val[:0])
		err = errors.Join(err, c.set(c.buf, c.val))
	}
	return err
}

// commit applies the change; p waits for its sync.
func (c *change) commit(p *pending) error {
	return commit(c.q.e.store, c.to, []*change{c}, p)
}

// commit applies changes that write to the same; p waits for their sync.
func commit(s *store, to *writes, changes []*change, p *pending) error {
	some, remote := false, false
	var err error
	for _, c := range changes {
		if some, remote = some || c.wrote, remote || c.remote; c.wrote {
			err = errors.Join(err, c.seal())
		}
	}
	if !some {
		abandon(to, changes)
		return nil
	}
	if err = errors.Join(err, to.join()); err != nil {
		return s.fail(err)
	}
	// One that gives leases to other processes only has to outlive this one, unless
	// what it rests on is not synced yet: then one sync does for both.
	kind := synced
	if remote && p.sees <= s.durable.Load() {
		kind = written
	}
	a, err := s.apply(to.batch, kind)
	if err != nil {
		return err
	}
	p.batches = append(p.batches, a)
	for _, c := range changes {
		if c.wrote {
			c.applied(a.seq, p)
		} else {
			c.q.e.live.Add(-c.claimed)
		}
		c.end()
	}
	return nil
}

// abandon gives up a change that was not committed.
func (c *change) abandon() { abandon(c.to, []*change{c}) }

// abandon gives up changes that write to the same and were not committed.
func abandon(to *writes, changes []*change) {
	to.close()
	for _, c := range changes {
		c.q.e.live.Add(-c.claimed)
		c.end()
	}
}

// applied changes memory as the batch has changed the disk.
func (c *change) applied(seq uint64, p *pending) {
	q := c.q
	q.seq = seq
	q.counts, q.forgets = q.counts.plus(c.counts), c.forgets
	q.e.live.Add(c.counts.live() - c.claimed)
	if c.mark.less(q.mark) {
		q.mark = c.mark
	}
	q.expired += c.expired
	q.died += c.died
	for _, t := range c.tenures {
		if t.ends {
			q.leases.remove(t.id)
		} else {
			q.leases.put(t.lease)
		}
	}
	hint := c.lapses < q.told
	if r := q.rules; r != nil {
		r.graves = c.graves
		if r.held && q.places(c.now) > 0 {
			r.held, hint = false, true
		}
	}
	q.told = min(q.told, c.lapses)
	q.names.note(c.named)
	for _, op := range c.ops {
		q.track(op, seq)
		if op.put && op.at < q.told {
			q.told, hint = op.at, true
		}
	}
	q.noteSweeps(c.ops)
	if hint {
		p.hints = append(p.hints, q.name)
	}
	if soon := (position{at: q.near.now + ahead}); q.near.len() > farFull && soon.less(q.loadedTo) {
		q.near.forgetFrom(soon)
		q.moveLoadedTo(soon)
	}
	if q.near.len() > nearFull {
		q.moveLoadedTo(q.near.evict(nearFull - nearOver))
	}
}

func (c counts) plus(d counts) counts {
	return counts{c.waiting + d.waiting, c.leased + d.leased, c.dead + d.dead, c.finished + d.finished}
}
