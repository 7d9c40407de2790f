package verify

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// skipped is how many ids a salvage skips if part of the log is missing: no message may get an
// id that was given before, though only clients know of it.
const skipped = 1 << 20

// write writes the new store, durably, without its manifest.
func (c *contents) write() error {
	for _, p := range c.parts {
		if err := c.salvage.keep(p); err != nil {
			return err
		}
	}
	for area := range memtable.Areas {
		if err := c.writeMemtable(area); err != nil {
			return err
		}
	}
	c.listTables()
	s := c.salvage
	if s.broken || s.rebuilt {
		c.nextID += skipped
	}
	s.next.NextID, s.next.NextQueue, s.next.NextFile = uint64(c.nextID), c.nextQueue, s.file
	if err := s.out.SyncDir(s.outTables()); err != nil {
		return err
	}
	return c.writeLog()
}

// writeMemtable writes the entries of an area that came from the log to an sstable.
func (c *contents) writeMemtable(area memtable.Area) error {
	var all []*kept
	for _, h := range c.memtable {
		if h.area == area {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *kept) int { return a.place.Compare(b.place) })
	made, err := c.salvage.makeTable(func(w *sstable.Writer) error {
		for _, h := range all {
			if err := w.Add(h.place, c.hash(h), h.keyed()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.parts = append(c.parts, &part{number: made.Number(), table: made, is: manifest.Table{Number: made.Number(), Area: uint8(area)}})
	return nil
}

// listTables lists the sstables that have live entries, with their deletion bitmaps.
func (c *contents) listTables() {
	for _, p := range c.parts {
		if p.table == nil || p.table.Count(0, p.table.Len()) == 0 {
			continue
		}
		is := manifest.Table{Number: p.table.Number(), Area: p.is.Area, Entries: p.table.Len(), Alive: p.table.Len(), Bytes: uint64(p.table.Bytes())}
		if bits, alive := p.table.AppendBits(nil); uint32(alive) < is.Entries {
			is.Deleted, is.Alive = bits, uint32(alive)
		}
		c.salvage.next.Tables = append(c.salvage.next.Tables, is)
	}
	slices.SortFunc(c.salvage.next.Tables, func(a, b manifest.Table) int { return cmp.Compare(a.Number, b.Number) })
}

// writeLog writes a log with names, settings, pauses and leases.
func (c *contents) writeLog() (err error) {
	dir := filepath.Join(c.salvage.to, manifest.LogName)
	log, _, err := wal.Open(c.salvage.out, dir, &wal.Config{ID: c.state.Store, SegmentBytes: c.salvage.segment, Spares: 1, RetryFor: -1,
		Logger: slog.New(slog.DiscardHandler)}, 0, func(wal.Entry) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := log.Begin(); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(c.names)) {
		b := (&record.Name{Queue: n, Name: []byte(c.names[n])}).Append(nil)
		if x, ok := c.settings[n]; ok {
			b = x.Append(b)
		}
		if until := c.pauses[n]; until != 0 {
			b = (&record.Pause{Queue: n, Until: until}).Append(b)
		}
		if _, err := log.Append(record.Group, b); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		spot, err := c.spotOfLease(id)
		if err != nil {
			return err
		}
		if spot.Table == 0 {
			continue
		}
		l := c.leases[id]
		l.From = spot
		if _, err := log.Append(record.Group, l.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// spotOfLease is where the message of a lease is; the zero Spot if it is not alive.
func (c *contents) spotOfLease(id engine.ID) (at record.Spot, err error) {
	err = c.living(id, func(p *part, pos uint32) error {
		if p.area() == memtable.Live {
			at = record.Spot{Table: p.table.Number(), At: pos}
		}
		return nil
	})
	return at, err
}
