package diskengine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// replay applies the records of the log to memory while the store is opened. Nobody else has
// the engine yet, so it takes no lock.
type replay struct {
	e     *Engine
	log   string // its directory
	value []byte
}

var _ record.Applier = (*replay)(nil)

// queue returns the queue with a number. A new one has no name until the log names it.
func (r *replay) queue(num uint32) *queue {
	q := r.e.numbered[num]
	if q == nil {
		q = r.e.newQueue("", num)
		r.e.numbered[num] = q
		r.e.nextQueue = max(r.e.nextQueue, num+1)
	}
	return q
}

// used notes an id and the number of an sstable, which must not be given again.
func (r *replay) used(id engine.ID, at record.Spot) {
	r.e.nextID = max(r.e.nextID, id+1)
	if at.Table != 0 {
		r.e.store.NextFile = max(r.e.store.NextFile, at.Table+1)
	}
}

// leave deletes a message from its sstable and removes its lease.
func (r *replay) leave(id engine.ID, from record.Spot) error {
	r.unlease(id)
	at, err := r.spot(id, from)
	if at.Src != nil {
		at.Kill()
	}
	return err
}

// spot is where in an sstable a message is.
func (r *replay) spot(id engine.ID, from record.Spot) (store.Spot, error) {
	if from.Table != 0 {
		if src := r.e.store.Tables.ByNumber(from.Table); src != nil {
			return store.Spot{Src: src, Pos: from.At}, nil
		}
	}
	return r.e.store.Tables.Find(uint64(id))
}

// Put implements record.Applier.
func (r *replay) Put(p *record.Put) error {
	r.used(p.ID, p.From)
	r.queue(p.Queue)
	if !p.New {
		if err := r.leave(p.ID, p.From); err != nil {
			return err
		}
	}
	r.put(p.ID, p.Queue, p.Key, &p.State, p.Content)
	return nil
}

func (r *replay) put(id engine.ID, queue uint32, key []byte, s *record.State, content []byte) {
	r.value = record.AppendValue(r.value[:0], s, content)
	r.e.store.Memtables.Put(memtable.Entry{ID: uint64(id), Queue: queue, Area: memtable.AreaOf(s.Dead), At: s.At(), Key: key, Value: r.value})
}

// Move implements record.Applier.
func (r *replay) Move(m *record.Move) error {
	e, ok := r.e.store.Memtables.ByID(uint64(m.ID))
	if !ok {
		return nil
	}
	_, content, err := record.ParseValue(e.Value)
	if err != nil {
		return err
	}
	r.unlease(m.ID)
	r.put(m.ID, e.Queue, e.Key, &m.State, content)
	return nil
}

// Lease implements record.Applier.
func (r *replay) Lease(x *record.Lease) error {
	r.used(x.ID, x.From)
	l := &lease{ID: uint64(x.ID), Deadline: x.Deadline, Attempt: x.Attempt, Remote: x.Remote, Given: x.Remote, Nonce: x.Nonce}
	if x.Lapsed {
		l.Deadline = min(l.Deadline, r.e.cfg.Now().UnixMilli()) // the clock may have been set back
	}
	if e, ok := r.e.store.Memtables.ByID(uint64(x.ID)); ok {
		if e.Area != memtable.Live {
			return nil
		}
		l.Queue = e.Queue
	} else {
		at, err := r.spot(x.ID, x.From)
		if err != nil {
			return err
		}
		if at.Src == nil || at.Src.Area != memtable.Live || !at.Src.Alive(at.Pos) {
			return nil
		}
		l.Queue = at.Src.QueueAt(at.Pos).Queue
		setSpot(l, at)
	}
	r.queue(l.Queue)
	r.unlease(x.ID)
	r.e.leases.SetWorker(r.e.leases.Add(l), x.Worker)
	return nil
}

// Gone implements record.Applier.
func (r *replay) Gone(g *record.Gone) error {
	r.used(g.ID, g.From)
	id := g.ID
	if g.Listed {
		id = engine.ID(memtable.Listed.IDOf(uint64(id)))
	}
	if r.e.store.Memtables.Remove(uint64(id)) {
		r.unlease(id)
		return nil
	}
	return r.leave(id, g.From)
}

// Finish implements record.Applier.
func (r *replay) Finish(f *record.Finish) error {
	r.used(f.ID, record.Spot{})
	r.queue(f.Queue)
	r.value = r.e.remember(f, r.value)
	return nil
}

// List implements record.Applier.
func (r *replay) List(l *record.List) error {
	r.used(l.ID, record.Spot{})
	r.queue(l.Queue)
	r.e.store.Memtables.Put(listedEntry(l))
	return nil
}

// Name implements record.Applier.
func (r *replay) Name(n *record.Name) error {
	q := r.queue(n.Queue)
	if len(n.Name) == 0 {
		delete(r.e.queues, q.name)
		delete(r.e.numbered, n.Queue)
		return nil
	}
	q.name = string(n.Name)
	r.e.queues[q.name] = q
	return nil
}

// Configure implements record.Applier.
func (r *replay) Configure(c *record.Configure) error {
	r.queue(c.Queue).settings = &rules.Settings{Settings: c.Settings, Revision: c.Revision}
	return nil
}

// Pause implements record.Applier.
func (r *replay) Pause(p *record.Pause) error {
	r.queue(p.Queue).pause = p.Until
	return nil
}

func (r *replay) unlease(id engine.ID) {
	if l := r.e.leases.ByID(uint64(id)); l != nil {
		r.e.leases.Remove(l)
	}
}

// finish counts what each queue holds, and ends leases that nothing can settle any more.
func (r *replay) finish() error {
	e := r.e
	for num, q := range e.numbered {
		if q.name == "" {
			for _, l := range r.leasesOf(q) {
				e.leases.Remove(l)
			}
			delete(e.numbered, num)
		} else {
			e.nums.Store(q.name, num)
			e.names.Add(q.name)
		}
	}
	var nameless uint32
	e.store.Memtables.Places(func(num uint32, a memtable.Area, n int64) {
		if q := e.numbered[num]; q != nil {
			*q.count(a) += n
		} else if n > 0 {
			nameless = num
		}
	})
	for a, list := range e.store.Tables.Of {
		for _, src := range list {
			for _, part := range src.Queues() {
				n := int64(src.Count(part.From, part.To))
				if q := e.numbered[part.Queue]; q != nil {
					*q.count(memtable.Area(a)) += n
				} else if n > 0 {
					nameless = part.Queue
				}
			}
		}
	}
	if nameless != 0 { // its name was in a part of the log that is missing
		return &vfs.DamageError{What: wal.ErrDamaged, File: r.log, Reason: fmt.Sprintf("queue %d holds something, and has no name", nameless)}
	}
	now := e.cfg.Now().UnixMilli()
	for _, q := range slices.SortedFunc(maps.Values(e.queues), func(a, b *queue) int { return cmp.Compare(a.num, b.num) }) {
		e.live += q.live
		all := r.leasesOf(q)
		if err := r.know(q, all); err != nil {
			return err
		}
		for _, l := range all {
			if !l.Remote && l.Deadline > now {
				e.leases.Extend(l, now)
			}
			q.ends = min(q.ends, l.Deadline)
		}
		q.leased = int64(len(all))
	}
	return nil
}

// leasesOf returns the leases of a queue. During a replay none is marked as lapsed.
func (r *replay) leasesOf(q *queue) (all []*lease) {
	r.e.leases.Ascend(q.num, memtable.First, func(l *lease) bool { all = append(all, l); return true })
	return all
}

// know copies into the leases of a queue what they need of their messages.
func (r *replay) know(q *queue, all []*lease) error {
	c := r.e.call(context.Background(), "open", new(scratch))
	knows := func(l *lease, m *message) {
		r.e.leases.SetDue(l, m.Due)
		know(l, m)
	}
	var spots []store.Spot
	for _, l := range all {
		if at := r.e.spotOfLease(l); at.Src != nil {
			spots = append(spots, at)
			continue
		}
		x, _ := r.e.store.Memtables.ByID(l.ID)
		m, err := c.fromMemtable(q, x)
		if err != nil {
			return err
		}
		knows(l, &m)
	}
	for len(spots) > 0 {
		some := spots[:min(len(spots), store.StepItems)]
		for _, at := range some {
			_, _ = c.reader.Head(at)
		}
		if err := c.reader.Read(); err != nil {
			return err
		}
		for _, at := range some {
			v, err := c.reader.Head(at)
			if err == store.ErrLack { // the values were too large to be read at once
				break
			}
			if store.IsUnreadable(err) { // the lease will lapse, and the message is not handed out
				spots = spots[1:]
				continue
			}
			if err != nil {
				return err
			}
			m, err := c.stored(q, at, v)
			if err != nil {
				return err
			}
			knows(m.lease, &m)
			spots = spots[1:]
		}
		c.reader.Forget()
	}
	return nil
}
