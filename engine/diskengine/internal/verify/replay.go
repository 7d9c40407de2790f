package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
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
	case errors.Is(err, vfs.ErrVersion):
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
	if _, err := record.ParseContent(p.Content); err != nil {
		c.wrongRecord("message %d: %v", p.ID, err)
		return nil
	}
	if p.New {
		if c.memtable[p.ID] != nil {
			c.wrongRecord("message %d is pushed twice", p.ID)
		}
		c.nextID = max(c.nextID, p.ID+1)
	}
	if !p.New || c.salvage != nil {
		if err := c.remove(p.ID, p.From); err != nil {
			return err
		}
	}
	c.queue(p.Queue)
	h := &kept{place: sstable.Place{Queue: p.Queue, ID: uint64(p.ID)}, key: string(p.Key)}
	if c.salvage != nil {
		h.value = slices.Clone(p.Content)
	}
	h.move(p.State)
	c.memtable[p.ID] = h
	return nil
}

// Move implements record.Applier. If the Put of a message is lost, it moves from the sstable in
// which it was before.
func (c *contents) Move(r *record.Move) error {
	c.given(r.ID)
	delete(c.leases, r.ID)
	if h, ok := c.memtable[r.ID]; ok {
		if h.area.IsMessage() {
			h.move(r.State)
		}
		return nil
	}
	return c.living(r.ID, func(p *part, pos uint32) error {
		c.wrongRecord("message %d is moved, and stands in sstable %d: the log does not tell its content", r.ID, p.number)
		if !p.area().IsMessage() {
			return nil
		}
		h, err := c.load(p, pos)
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

// Gone implements record.Applier.
func (c *contents) Gone(g *record.Gone) error {
	if g.Listed {
		return c.remove(engine.ID(memtable.Listed.IDOf(uint64(g.ID))), g.From)
	}
	return c.remove(g.ID, g.From)
}

// Finish implements record.Applier.
func (c *contents) Finish(f *record.Finish) error {
	c.given(f.ID)
	if c.salvage != nil {
		if err := c.remove(f.ID, record.Spot{}); err != nil {
			return err
		}
	}
	c.queue(f.Queue)
	c.memtable[f.ID] = &kept{place: sstable.Place{Queue: f.Queue, At: f.Forgotten, ID: uint64(f.ID)}, area: memtable.Finished, key: string(f.Key),
		value: (&record.Trace{Due: f.Due, Ending: f.Ending, Ended: f.Ended}).Append(nil)}
	return nil
}

// List implements record.Applier.
func (c *contents) List(l *record.List) error {
	id := engine.ID(memtable.Listed.IDOf(uint64(l.ID)))
	c.given(id)
	if c.salvage != nil {
		if err := c.remove(id, record.Spot{}); err != nil {
			return err
		}
	}
	c.queue(l.Queue)
	c.memtable[id] = &kept{place: sstable.Place{Queue: l.Queue, At: l.Ended, ID: uint64(id)}, area: memtable.Listed, key: string(l.Key), value: slices.Clone(l.Value)}
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
