package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

func (r *reader) logConfig() *wal.Config {
	return &wal.Config{ID: r.state.Store, Begun: r.state.Begun, MaxEntry: 1 << 30} // the most of any log
}

// replay replays the log, which should be sound.
func (c *contents) replay() error {
	dir := c.logDir()
	found, err := wal.Read(c.fs, dir, c.logConfig(), wal.Pos(c.state.Replay), c.entry)
	c.rep.Records, c.rep.Torn = found.Entries, found.Torn
	if err != nil || c.is == nil {
		return c.wrong(err, dir)
	}
	switch {
	case c.state.Store != c.is.Store:
		c.rep.add(dir, -1, "it is of another store than the backup says")
	case uint64(found.End) != c.is.LogEnd:
		c.rep.add(dir, -1, "the log ends at position %d; it was copied up to %d", found.End, c.is.LogEnd)
	case found.Torn != nil:
		c.rep.add(found.Torn.File, found.Torn.Offset, "the end of the log is broken: %s", found.Torn.Reason)
	}
	return nil
}

// entry applies an entry of the log. A malformed one is a finding, and passed over.
func (c *contents) entry(e wal.Entry) error {
	c.at = e.Start
	err := record.Each(e.Kind, e.Bytes, c)
	switch {
	case c.err != nil:
		return c.err
	case errors.Is(err, record.ErrNewer):
		return err
	case err != nil:
		c.wrongRecord("%v", err)
	}
	return c.pace(len(e.Bytes))
}

func (c *contents) wrongRecord(format string, args ...any) {
	c.rep.add(c.logDir(), int64(c.at), "%s", fmt.Sprintf(format, args...))
}

// Put implements record.Applier.
func (c *contents) Put(p *record.Put) error {
	if err := whole(p.Content); err != nil {
		c.wrongRecord("message %d: %v", p.ID, err)
		return nil
	}
	if p.New {
		if c.memtable[p.ID] != nil {
			c.wrongRecord("message %d is pushed twice", p.ID)
		}
		c.nextID = max(c.nextID, p.ID+1)
	}
	if !p.New || c.mends != nil {
		if err := c.leave(p.ID, p.From); err != nil {
			return err
		}
	}
	c.queue(p.Queue)
	h := &kept{place: sstable.Place{Queue: p.Queue, ID: uint64(p.ID)}, key: string(p.Key)}
	if c.mends != nil {
		h.value = slices.Clone(p.Content)
	}
	h.move(p.State)
	c.memtable[p.ID] = h
	return nil
}

// Move implements record.Applier. A message whose Put is lost moves from the sstable in which
// it was before.
func (c *contents) Move(r *record.Move) error {
	c.given(r.ID)
	delete(c.leases, r.ID)
	if h, ok := c.memtable[r.ID]; ok {
		if h.area != memtable.Finished {
			h.move(r.State)
		}
		return nil
	}
	return c.living(r.ID, func(p *part, pos uint32) error {
		c.wrongRecord("message %d is moved, and stands in sstable %d: the log does not tell its content", r.ID, p.number)
		if p.area() == memtable.Finished {
			return nil
		}
		h, err := c.taken(p, pos)
		if err == nil {
			h.move(r.State)
		}
		return err
	})
}

// Lease implements record.Applier.
func (c *contents) Lease(l *record.Lease) error {
	c.given(l.ID)
	c.leases[l.ID] = *l
	_, _, err := c.spot(l.ID, l.From)
	return err
}

// Extend implements record.Applier.
func (c *contents) Extend(x *record.Extend) error {
	if l, ok := c.leases[x.ID]; ok {
		l.Deadline = x.Deadline
		c.leases[x.ID] = l
	}
	return nil
}

// Gone implements record.Applier.
func (c *contents) Gone(g *record.Gone) error { return c.leave(g.ID, g.From) }

// Finish implements record.Applier.
func (c *contents) Finish(f *record.Finish) error {
	c.given(f.ID)
	if c.mends != nil {
		if err := c.leave(f.ID, record.Spot{}); err != nil {
			return err
		}
	}
	c.queue(f.Queue)
	c.memtable[f.ID] = &kept{place: sstable.Place{Queue: f.Queue, At: f.Forgotten, ID: uint64(f.ID)}, area: memtable.Finished, key: string(f.Key),
		value: (&record.Trace{Due: f.Due, Ending: f.Ending, Ended: f.Ended}).Append(nil)}
	return nil
}

// Name implements record.Applier.
func (c *contents) Name(n *record.Name) error {
	c.queue(n.Queue)
	if len(n.Name) > 0 {
		c.names[n.Queue], c.ever[n.Queue] = string(n.Name), string(n.Name)
		return nil
	}
	delete(c.names, n.Queue)
	delete(c.settings, n.Queue)
	delete(c.pauses, n.Queue)
	return nil
}

// Configure implements record.Applier.
func (c *contents) Configure(x *record.Configure) error {
	c.queue(x.Queue)
	c.settings[x.Queue] = *x
	return nil
}

// Pause implements record.Applier.
func (c *contents) Pause(p *record.Pause) error {
	c.queue(p.Queue)
	c.pauses[p.Queue] = p.Until
	return nil
}

// Spare implements record.Applier.
func (c *contents) Spare(s *record.Spare) error {
	if s.First || c.spares[s.Queue] == nil {
		c.spares[s.Queue] = map[engine.ID]struct{}{}
	}
	for _, id := range s.IDs {
		c.spares[s.Queue][id] = struct{}{}
	}
	return nil
}

// Purge implements record.Applier. After a gap, or if it is not known from where the log
// counts, it is not known which ids were spared: then a salvage removes nothing.
func (c *contents) Purge(p *record.Purge) error {
	spares := c.spares[p.Queue]
	delete(c.spares, p.Queue)
	if c.mends != nil {
		c.given(p.UpTo)
		if c.gaps > 0 || c.mends.rebuilt {
			c.passed++
			return nil
		}
	}
	takes := func(a memtable.Area, id engine.ID) bool {
		if _, spared := spares[id]; spared && p.Spares || id > p.UpTo {
			return false
		}
		switch a {
		case memtable.Dead:
			return p.Also&engine.PurgeDead != 0
		case memtable.Finished:
			return p.Also&engine.PurgeFinished != 0
		}
		l, leased := c.leases[id]
		return !leased || l.Deadline <= p.At
	}
	for id, h := range c.memtable {
		if h.place.Queue == p.Queue && takes(h.area, id) {
			delete(c.memtable, id)
			delete(c.leases, id)
		}
	}
	for _, x := range c.parts {
		if err := c.purgeTable(x, p.Queue, takes); err != nil {
			return c.failed(err)
		}
	}
	return nil
}

// purgeTable deletes from an sstable what a purge takes.
func (c *contents) purgeTable(p *part, queue uint32, takes func(memtable.Area, engine.ID) bool) error {
	if p.table == nil {
		return nil
	}
	q, ok := p.table.Queue(queue)
	if !ok {
		return nil
	}
	s := p.table.Scan(q.From, q.To)
	for s.Next() {
		if e := s.Entry(); takes(p.area(), engine.ID(e.ID)) {
			p.table.Kill(e.Pos)
			delete(c.leases, engine.ID(e.ID))
		}
	}
	return errors.Join(s.Err(), s.Close())
}
