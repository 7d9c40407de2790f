package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// purging is a purge under way. One record says what it removes. From then on those messages
// and keys are gone for all callers, while they are removed in slices.
type purging struct {
	record.Purge
	spares  *spares
	dead    int64 // how many dead messages are still to be removed
	removed int64
	done    chan struct{} // closed when all is removed, or the engine closes
	carry   func()        // carries it out, if nothing happens by itself (tuning.still)
	err     error
}

// spares are ids that a purge does not touch though they are not leased now: messages that
// were leased when it began, dead ones that were redriven since, and keys that were remembered
// since.
type spares struct {
	of    map[engine.ID]struct{}
	order []engine.ID // as they were added
}

func (s *spares) add(id engine.ID) {
	if _, ok := s.of[id]; ok {
		return
	}
	if s.of == nil {
		s.of = make(map[engine.ID]struct{})
	}
	s.of[id] = struct{}{}
	s.order = append(s.order, id)
}

// hides reports whether a message or key is gone for callers because of the purge under way.
func (q *queue) hides(a memtable.Area, id engine.ID) bool {
	p := q.purge
	if p == nil || id > p.UpTo || !p.covers(a) {
		return false
	}
	if _, spared := p.spares.of[id]; spared {
		return false
	}
	return a != memtable.Live || !q.held(id) // a message leased now was leased when the purge began
}

// spare notes that an id is not part of the purge under way, though from now on it could seem
// so: a message whose lease has ended, a dead one that was redriven, or a key that was
// remembered since.
func (q *queue) spare(id engine.ID) {
	if p := q.purge; p != nil && id <= p.UpTo {
		p.spares.add(id)
	}
}

func (p *purging) covers(a memtable.Area) bool {
	switch a {
	case memtable.Dead:
		return p.Also&engine.PurgeDead != 0
	case memtable.Finished:
		return p.Also&engine.PurgeFinished != 0
	}
	return true
}

// Purge removes the messages that were scheduled or ready when it began, and what also names.
// If ctx ends first, the purge goes on all the same.
func (e *Engine) Purge(ctx context.Context, name string, also engine.PurgeAlso) (int64, error) {
	var p *purging
	err := e.do(ctx, "purge", func(c *call) error {
		for {
			other, err := e.beginPurge(c, name, also, &p)
			if err != nil || p != nil || other == nil {
				return err
			}
			select {
			case <-other.done:
				if other.err != nil {
					return other.err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if p != nil && p.carry != nil {
		p.carry()
	}
	if err != nil || p == nil {
		return 0, err
	}
	select {
	case <-p.done:
		return p.removed, wrap("purge", p.err)
	case <-ctx.Done():
		e.store.Mu.Lock()
		defer e.store.Mu.Unlock()
		return p.removed, &engine.Error{Op: "purge", Queue: name, Err: ctx.Err(), Hint: "the rest is removed all the same"}
	}
}

// beginPurge begins a purge, or returns the one that is under way. First it makes sure that
// the log has all leases of the queue.
func (e *Engine) beginPurge(c *call, name string, also engine.PurgeAlso, p **purging) (other *purging, err error) {
	e.store.Mu.Lock()
	e.beginning++ // no memtable is sealed meanwhile: otherwise it might never end
	e.store.Mu.Unlock()
	defer func() {
		e.store.Mu.Lock()
		defer e.store.Mu.Unlock()
		e.beginning--
		e.store.Compactor.Wake()
	}()
	var t leaseLog
	for {
		again := false
		err := c.step(func() error {
			q, err := c.visit(name, false)
			if q == nil || err != nil {
				return err
			}
			if other = q.purge; other != nil { // one after the other
				return nil
			}
			if again = !c.logLeases(q, &t); again {
				return nil
			}
			*p, err = c.startPurge(q, also)
			return err
		})
		if err != nil || !again {
			return other, err
		}
		e.cfg.tune.Between("purge begins")
	}
}

// leaseLog is how far logLeases has written the leases of a queue.
type leaseLog struct {
	q     *queue
	seals uint64
	next  memtable.Position
}

// logLeases makes sure that the log has the leases of a queue, lapsed ones too, after the last
// seal. It writes some at a time, and reports whether all are there.
func (c *call) logLeases(q *queue, t *leaseLog) bool {
	e := c.e
	if t.q != q || t.seals != e.store.Seals {
		*t = leaseLog{q, e.store.Seals, memtable.First}
	}
	if q.toldAt != e.store.Seals {
		n := 0
		q.leases.Ascend(q.num, t.next, func(l *lease) bool {
			c.writeLease(l)
			t.next = after(memtable.Position{At: l.Deadline, ID: l.ID})
			n++
			return n < store.StepItems
		})
		if n == store.StepItems {
			c.touch(q)
			return false
		}
		q.toldAt = e.store.Seals
	}
	// Some have lapsed by a clock that was ahead of the present one, or with the process that
	// had them.
	for n := 0; ; n++ {
		l := q.leases.FirstOver(q.num, memtable.Position{At: c.ms + 1})
		if l == nil {
			return true
		}
		if n == store.StepItems {
			return false
		}
		c.group = (&record.Extend{ID: engine.ID(l.ID), Deadline: lapsed}).Append(c.group)
		c.touch(q)
		l.Untold = false
		q.leases.Lapse(l, lapsed)
	}
}

// lapsed is the deadline that the log has for a lease that has lapsed, whatever the clock
// says.
const lapsed = 0

// startPurge logs what a purge removes, and begins to remove it.
func (c *call) startPurge(q *queue, also engine.PurgeAlso) (*purging, error) {
	e := c.e
	p := &purging{spares: new(spares), done: make(chan struct{})}
	p.Purge = record.Purge{Queue: q.num, Also: also, UpTo: e.nextID - 1, At: c.ms}
	if !e.calls.TryEnter() {
		return nil, &engine.Error{Op: "purge", Err: engine.ErrClosed}
	}
	c.group = p.Append(c.group)
	c.touch(q)
	q.rewind()
	if p.covers(memtable.Dead) {
		p.dead = q.dead
	}
	q.purge = p
	c.e.hide(q, q.live-q.leased)
	carry := func() {
		defer e.calls.Leave()
		e.carryOutPurge(q, p)
	}
	if e.cfg.tune.Still {
		p.carry = carry
	} else {
		go carry()
	}
	return p, nil
}

// carryOutPurge removes what a purge names. If that fails, the caller of Purge gets the error
// and the rest is tried again later: it is still counted.
func (e *Engine) carryOutPurge(q *queue, p *purging) {
	pause := time.Duration(0)
	for tries := 1; ; tries++ {
		c := &call{e: e, ctx: e.store.Life, op: "purge", least: never, scratch: new(scratch)}
		s := sweep{q: q, p: p}
		err := s.run(c)
		if err != nil && e.store.Life.Err() != nil {
			err = &engine.Error{Op: "purge", Queue: q.name, Err: engine.ErrClosed, Hint: "the engine was closed; the rest is removed when it is opened again"}
		}
		e.store.Mu.Lock()
		if p.err = err; err == nil {
			q.purge = nil
			e.hide(q, -q.hidden) // messages that could not be read stay
			q.told, q.hint = c.ms, false
		}
		ends := err == nil || e.store.Life.Err() != nil || e.store.Failed() != nil
		again := &purging{Purge: p.Purge, spares: p.spares, dead: p.dead, done: make(chan struct{})}
		if !ends {
			q.purge = again
		}
		close(p.done)
		e.store.Mu.Unlock()
		if err == nil {
			e.watchers.Hint(q.name)
		}
		if ends {
			return
		}
		e.store.Slog.Warn("tarry disk: a purge failed and is tried again", "dir", e.store.Dir, "queue", q.name, "error", err)
		p = again
		if e.cfg.tune.Still {
			if tries == stillTries {
				p.err = err
				close(p.done)
				return
			}
			continue
		}
		pause = store.Longer(pause)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-e.store.Life.Done():
		case <-e.store.Log.Failed():
		}
		wait.Stop()
	}
}

// stillTries is how often a purge is tried if nothing happens by itself (tuning.still).
const stillTries = 3

// sweep removes what a purge names: first from the memtables, then from the sstables.
type sweep struct {
	q *queue
	p *purging

	area  memtable.Area
	swept map[*store.Source]bool
}

func (s *sweep) run(c *call) error {
	s.swept = make(map[*store.Source]bool)
	if err := s.leases(c); err != nil {
		return err
	}
	for s.area = memtable.Live; s.area <= memtable.Finished; s.area++ {
		if !s.p.covers(s.area) {
			continue
		}
		for from := memtable.First; ; {
			more := false
			err := c.step(func() (err error) {
				from, more, err = s.inMemtables(c, from)
				return err
			})
			c.e.cfg.tune.Between("purge")
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	for {
		src := s.next(c)
		if src == nil {
			return nil
		}
		if err := s.inTable(c, src); err != nil {
			return err
		}
		s.swept[src] = true
	}
}

// leases removes the lapsed leases of messages that the purge removes.
func (s *sweep) leases(c *call) error {
	from, q := memtable.First, s.q
	for more := true; more; c.e.cfg.tune.Between("purge") {
		err := c.step(func() error {
			var some []*lease
			q.leases.AscendOver(q.num, from, func(l *lease) bool {
				from = after(memtable.Position{At: l.Deadline, ID: l.ID})
				some = append(some, l)
				return len(some) < store.StepItems
			})
			more = len(some) == store.StepItems
			for _, l := range some {
				if q.hides(memtable.Live, engine.ID(l.ID)) {
					q.unlease(l)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inMemtables removes some messages from the memtables, from a position on. It returns where
// to go on, and whether there are more.
func (s *sweep) inMemtables(c *call, from memtable.Position) (memtable.Position, bool, error) {
	var ids []uint64
	looked, more := 0, false
	c.e.store.Memtables.Ascend(s.q.num, s.area, from, func(e memtable.Entry) bool {
		if looked == store.StepItems {
			more = true
			return false
		}
		looked++
		from = after(memtable.Position{At: e.At, ID: e.ID})
		if s.q.hides(s.area, engine.ID(e.ID)) {
			ids = append(ids, e.ID)
		}
		return true
	})
	for _, id := range ids {
		e, _ := c.e.store.Memtables.ByID(id)
		s.remove(c, e.Area, e.At, store.Spot{}, engine.ID(id))
	}
	return from, more, nil
}

// remove removes a message from memory: the log has the purge.
func (s *sweep) remove(c *call, a memtable.Area, at int64, where store.Spot, id engine.ID) {
	m := message{id: id, q: s.q, area: a, at: where}
	if a == memtable.Live {
		m.Due = at
		m.leased()
	}
	c.purged(&m)
}

// hide adds n to the live messages that purges still have to remove.
func (e *Engine) hide(q *queue, n int64) {
	q.hidden += n
	e.hidden += n
}

// purged removes a message from memory that the purge under way names.
func (c *call) purged(m *message) {
	switch m.area {
	case memtable.Live:
		c.e.hide(m.q, -1)
	case memtable.Dead:
		m.q.purge.dead--
	}
	c.vanish(m)
	m.q.purge.removed++
}

// next returns an sstable that is still to be swept; nil: there is none.
func (s *sweep) next(c *call) *store.Source {
	e := c.e
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	for a, list := range e.store.Tables.Of {
		if !s.p.covers(memtable.Area(a)) {
			continue
		}
		for _, src := range list {
			if _, ok := src.Queue(s.q.num); ok && !s.swept[src] {
				return src
			}
		}
	}
	return nil
}

// inTable removes messages from an sstable, in slices that it reads without the lock.
func (s *sweep) inTable(c *call, src *store.Source) error {
	part, _ := src.Queue(s.q.num)
	if src.MaxID() <= uint64(s.p.UpTo) {
		if err := s.all(c, src, part); err != errSpares {
			return err
		}
	}
	for from := part.From; from < part.To; {
		to := min(part.To, src.Reach(from, 4*store.StepItems))
		var some []sstable.Entry
		err := c.apart(func() error {
			scan := src.Scan(from, to)
			for scan.Next() {
				e := scan.Entry()
				e.Value = nil
				some = append(some, e)
			}
			at := scan.At()
			err := errors.Join(scan.Err(), scan.Close())
			if errors.Is(err, sstable.ErrDamaged) { // pass over the block: its messages are not known
				c.e.unpurged(err)
				to, err = src.Reach(at, 1), nil
			}
			return err
		})
		if errors.Is(err, sstable.ErrClosed) {
			return nil // it was merged away: the sstable that has its messages now is swept
		}
		if err != nil {
			return err
		}
		for len(some) > 0 {
			err := c.step(func() error {
				n := min(len(some), store.StepItems)
				for _, e := range some[:n] {
					id := engine.ID(e.ID)
					at := store.Spot{Src: src, Pos: e.Pos}.Now()
					if at.Src == nil || !s.q.hides(src.Area, id) {
						continue
					}
					s.remove(c, src.Area, e.At, at, id)
				}
				some = some[n:]
				return nil
			})
			if err != nil {
				return err
			}
			c.e.cfg.tune.Between("purge")
		}
		from = to
	}
	return nil
}

// unpurged logs that a purge has left messages that cannot be read. They stay, and are never
// handed out.
func (e *Engine) unpurged(damage error) {
	e.store.Slog.Error("tarry disk: a purge passes over messages in a damaged block of an sstable; tarry check --salvage saves the others", "dir", e.store.Dir, "error", damage)
}

// errSpares says that a purge may have to leave some messages alone.
var errSpares = errors.New("some are spared")

// all removes all of a queue's part of an sstable. errSpares: they must be looked at one by
// one.
func (s *sweep) all(c *call, src *store.Source, part sstable.Queue) error {
	const slice = 1 << 16
	for from := part.From; from < part.To; from += min(slice, part.To-from) {
		err := c.step(func() error {
			if src.Into != nil { // it was merged away
				return errGone
			}
			if len(s.p.spares.order) > 0 || s.q.leased > 0 {
				return errSpares
			}
			n := int64(src.KillRange(from, min(part.To, from+slice)))
			if n > 0 {
				src.Dirty = true
			}
			*s.q.count(src.Area) -= n
			switch src.Area {
			case memtable.Live:
				c.e.live -= n
				c.e.hide(s.q, -n)
			case memtable.Dead:
				s.p.dead -= n
			}
			s.p.removed += n
			return nil
		})
		if err == errGone {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
