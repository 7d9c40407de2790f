package diskengine

import (
	"context"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// Purge removes the messages that were scheduled or ready when it began, and what also names. It
// removes some at a time, and others are let in between: of a message that changes meanwhile it
// depends on what it is when its turn comes. If Purge fails, it says how many are gone.
func (e *Engine) Purge(ctx context.Context, name string, also engine.PurgeAlso) (int64, error) {
	p := purge{areas: []memtable.Area{memtable.Live}}
	if also&engine.PurgeDead != 0 {
		p.areas = append(p.areas, memtable.Dead)
	}
	if also&engine.PurgeFinished != 0 {
		p.areas = append(p.areas, memtable.Finished, memtable.Listed)
	}
	err := e.do(ctx, "purge", func(c *call) error {
		err := c.step(func() (err error) {
			if p.q, err = c.visit(name, false); p.q != nil {
				c.see(p.q)
			}
			p.upTo = e.nextID - 1
			return err
		})
		if p.q == nil || err != nil {
			return err
		}
		return p.run(c)
	})
	return p.removed, err
}

// purge is a purge under way.
type purge struct {
	q       *queue
	areas   []memtable.Area
	upTo    engine.ID // the last one that was given when it began
	removed int64
}

// run goes through the memtables, then the sstables. What has moved meanwhile is in the
// memtables again, or in sstables that have come since.
func (p *purge) run(c *call) error {
	for _, a := range p.areas {
		done := make(map[*store.Source]bool)
		for more := true; more; {
			err := p.inMemtables(c, a)
			if err == nil {
				more, err = p.inTables(c, a, done)
			}
			if err != nil {
				return err
			}
		}
	}
	return c.step(func() error { p.q.rewind(); return nil }) // the heap has only what is gone
}

// step runs do in a step, unless the caller has left or the engine closes.
func (p *purge) step(c *call, do func()) error {
	err := c.ctx.Err()
	if c.e.store.Life.Err() != nil {
		err = engine.ErrClosed
	}
	if err != nil {
		return &engine.Error{Op: c.op, Queue: p.q.name, Err: err, Hint: "some messages are left: purge again"}
	}
	err = c.step(func() error { do(); return nil })
	c.e.cfg.tune.Between("purge")
	if log := c.e.store.Log; err == nil && c.syncedTo > log.Synced()+mostUnsynced {
		err = log.Wait(c.ctx, c.syncedTo)
	}
	return err
}

// mostUnsynced is how many bytes of the log a purge may be ahead of the disk, about: until they
// are written they are in memory.
const mostUnsynced = 1 << 20

// inMemtables removes messages of an area from the memtables.
func (p *purge) inMemtables(c *call, a memtable.Area) error {
	from, more := memtable.First, true
	for more {
		err := p.step(c, func() {
			more = false
			looked, some := 0, c.items[:0]
			c.e.store.Memtables.Ascend(p.q.num, a, from, func(e memtable.Entry) bool {
				if looked == store.StepItems {
					more = true
					return false
				}
				looked++
				from = e.Position().Next()
				some = append(some, store.Item{Due: e.At, ID: engine.ID(e.ID)})
				return true
			})
			for _, t := range some {
				p.remove(c, a, t, store.Spot{})
			}
			c.items = some[:0]
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inTables removes messages of an area from the sstables that are not done, also from those that
// come meanwhile. It reports whether there were any.
func (p *purge) inTables(c *call, a memtable.Area, done map[*store.Source]bool) (some bool, err error) {
	for {
		var next *store.Source
		for _, src := range c.e.store.Outer.Load().Of[a] {
			if _, ok := src.Queue(p.q.num); ok && !done[src] {
				next = src
				break
			}
		}
		if next == nil {
			return some, nil
		}
		if err := p.inTable(c, next); err != nil {
			return some, err
		}
		done[next], some = true, true
	}
}

// inTable removes messages from an sstable, which it reads without the lock.
func (p *purge) inTable(c *call, src *store.Source) error {
	part, _ := src.Queue(p.q.num)
	for from := part.From; from < part.To; {
		begin := from
		var some []store.Item
		var damage error
		err := c.withoutLock(func() (err error) {
			some, from, damage, err = src.Items(begin, part.To, store.MostItems)
			if store.IsUnreadable(err) {
				damage = err
			}
			if damage != nil { // the index of ids knows what is there
				some = some[:0]
				err = src.IDsIn(begin, from, func(pos uint32, id uint64) { some = append(some, store.Item{ID: engine.ID(id), Pos: pos, Src: src}) })
			}
			return err
		})
		if errors.Is(err, sstable.ErrClosed) {
			return nil // it was merged away: the one that has its messages now comes later
		}
		if err != nil {
			return err
		}
		for len(some) > 0 {
			err := p.step(c, func() {
				if damage != nil {
					p.q.rewind() // it is not known which messages are in the heap
				}
				n := min(len(some), store.StepItems)
				for _, t := range some[:n] {
					if at := t.Spot().Now(); at.Src != nil {
						p.remove(c, src.Area, t, at)
					}
				}
				some = some[n:]
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes an entry, unless it came after the purge began or is leased.
func (p *purge) remove(c *call, a memtable.Area, t store.Item, at store.Spot) {
	m := message{id: engine.ID(memtable.MessageOf(uint64(t.ID))), q: p.q, area: a, at: at}
	m.Due = t.Due
	m.leased()
	if m.id > p.upTo || m.lease != nil && !m.lease.HasLapsed() {
		return
	}
	c.drop(&m)
	p.removed++
}
