package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// together compares different files with each other, once the log was replayed. In a salvage
// it removes whatever is there twice.
func (c *contents) together() error {
	if err := c.ids(); err != nil {
		return err
	}
	for _, a := range []memtable.Area{memtable.Live, memtable.Finished} {
		if err := c.keys(a); err != nil {
			return err
		}
	}
	c.queues()
	return nil
}

// tables returns the sstables that are there, with their parts.
func (c *contents) tables(want func(*part) bool) (tables []*sstable.Table, of []*part) {
	for _, p := range c.parts {
		if p.table != nil && want(p) {
			tables, of = append(tables, p.table), append(of, p)
		}
	}
	return tables, of
}

func (c *contents) wrongTable(p *part, format string, args ...any) {
	c.rep.add(sstable.Name(c.tablesDir, p.number), -1, format, args...)
}

// ids keeps of each id only the message in the log, or else the one in the newest sstable. If
// it is not known which sstables count, deleted entries count for that too.
func (c *contents) ids() error {
	tables, of := c.tables(func(*part) bool { return true })
	type spot struct {
		p   *part
		pos uint32
	}
	var same []spot
	last := uint64(0)
	settle := func() {
		best, before := (*part)(nil), (*part)(nil)
		told := c.memtable[engine.ID(last)] != nil
		for _, s := range same {
			alive := s.p.table.Alive(s.pos)
			if alive && told {
				c.wrongTable(s.p, "message %d stands at %d in sstable %d, and the log tells of it too", last, s.pos, s.p.number)
			}
			if alive && before != nil {
				c.wrongTable(s.p, "message %d stands at %d in sstable %d and also in sstable %d", last, s.pos, s.p.number, before.number)
			}
			if alive {
				before = s.p
			}
			if (alive || c.salvage != nil && c.salvage.rebuilt) && !told && (best == nil || s.p.number > best.number) {
				best = s.p
			}
		}
		for _, s := range same {
			if s.p != best {
				s.p.table.Kill(s.pos)
			}
		}
		same = same[:0]
	}
	err := sstable.EachID(tables, func(id uint64, at int, pos uint32) error {
		return c.paced(func() error {
			if id != last {
				settle()
			}
			last = id
			c.nextID = max(c.nextID, engine.ID(memtable.MessageOf(id))+1)
			same = append(same, spot{of[at], pos})
			return nil
		})
	})
	settle()
	return err
}

// owner is a message or remembered key that has a key.
type owner struct {
	id   engine.ID // 0: not known yet
	part *part     // nil: it is in the log
	pos  uint32
}

func (o *owner) find() error {
	if o.id != 0 {
		return nil
	}
	e, err := o.part.table.Get(o.pos)
	o.id = engine.ID(e.ID)
	return err
}

// keys looks for keys that two entries of an area have in one queue. The message pushed last
// keeps the key.
func (c *contents) keys(area memtable.Area) error {
	var lost []owner
	has := map[sstable.Key]engine.ID{}
	for _, id := range slices.Sorted(maps.Keys(c.memtable)) {
		h := c.memtable[id]
		if h.area != area || h.key == "" {
			continue
		}
		key := c.hash(h)
		if other, ok := has[key]; ok {
			c.rep.add(c.logDir(), -1, "messages %d and %d of queue %d have one key", other, id, h.place.Queue)
			lost = append(lost, owner{id: other})
		}
		has[key] = id
	}
	tables, of := c.tables(func(p *part) bool { return p.area() == area })
	var last sstable.Key
	var holder owner
	err := sstable.EachKey(tables, func(key sstable.Key, at int, pos uint32) error {
		return c.paced(func() error {
			if !tables[at].Alive(pos) {
				return nil
			}
			is := owner{part: of[at], pos: pos}
			if key != last {
				last, holder = key, owner{id: has[key]}
				if holder.id == 0 {
					holder = is // alone, so far
					return nil
				}
			}
			if holder.part == nil {
				c.wrongTable(is.part, "the message at %d in sstable %d has the key of message %d, of which the log tells", pos, is.part.number, holder.id)
			} else {
				c.wrongTable(is.part, "the message at %d in sstable %d has the key of one in sstable %d", pos, is.part.number, holder.part.number)
			}
			for _, o := range []*owner{&is, &holder} {
				if err := o.find(); err != nil {
					return err
				}
			}
			if holder.id > is.id {
				is, holder = holder, is
			}
			lost = append(lost, holder)
			holder = is
			return nil
		})
	})
	if err != nil || c.salvage == nil {
		return err
	}
	return c.lose(area, lost)
}

// lose removes the keys of live messages, which are kept without, and removes remembered keys.
func (c *contents) lose(area memtable.Area, lost []owner) error {
	for _, o := range lost {
		if o.part != nil && area == memtable.Finished {
			o.part.table.Kill(o.pos)
			continue
		}
		if o.part != nil {
			if _, err := c.load(o.part, o.pos); err != nil {
				return err
			}
		}
		if area == memtable.Finished {
			delete(c.memtable, o.id)
		} else {
			c.memtable[o.id].key = ""
		}
	}
	if len(lost) > 0 && area == memtable.Live {
		c.salvage.note("%d messages whose keys newer ones have are kept without a key: most had been acked or cancelled", len(lost))
	}
	return nil
}

// queues looks for names that two queues have, and for queues that hold something but have no
// name. A salvage gives these a name.
func (c *contents) queues() {
	lives := map[uint32]int{}
	c.each(func(queue uint32, _ memtable.Area, n int) { lives[queue] += n })
	taken := map[string]uint32{}
	for _, n := range slices.Sorted(maps.Keys(c.names)) {
		name := c.names[n]
		if other, ok := taken[name]; ok { // the record that forgot the first one is lost
			c.rep.add(c.logDir(), -1, "queues %d and %d have one name, %q", other, n, name)
			delete(c.names, n)
			continue
		}
		taken[name] = n
	}
	for _, n := range slices.Sorted(maps.Keys(lives)) {
		c.queue(n)
		if _, named := c.names[n]; named {
			continue
		}
		c.rep.add(c.logDir(), -1, "queue %d holds something, and has no name", n)
		if c.salvage == nil {
			continue
		}
		name := fmt.Sprint("lost-", n)
		if old := c.ever[n]; old != "" && taken[old] == 0 {
			name = old
		}
		for taken[name] != 0 {
			name += "-"
		}
		taken[name], c.names[n] = n, name
		c.salvage.note("the name of queue number %d, which holds %d, is not known: it is called %s", n, lives[n], name)
	}
}
