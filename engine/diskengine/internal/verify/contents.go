package verify

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// contents is what a store holds: its sstables, and the log on top of them. It is a
// record.Applier. It notes what does not fit, and in a salvage makes it fit.
type contents struct {
	*reader
	salvage  *salvage            // nil: it is a check
	byNumber map[uint64]*part    // those that have an sstable
	memtable map[engine.ID]*kept // by the ids of entries
	names    map[uint32]string
	ever     map[uint32]string // names of forgotten queues too
	settings map[uint32]record.Configure
	pauses   map[uint32]int64
	leases   map[engine.ID]record.Lease

	nextID    engine.ID // the least that was never given
	nextQueue uint32
	at        wal.Pos // where the entry of the log begins that is being applied
	err       error   // of the file system
}

// kept is a message, a remembered key or a finished message from the log, as an sstable would
// have it.
type kept struct {
	place sstable.Place
	area  memtable.Area
	key   string
	state record.State
	value []byte // what follows the key and, for a message, the state; nil for messages in a check
}

func (h *kept) keyed() []byte {
	value := h.value
	if h.area.IsMessage() {
		value = record.AppendValue(nil, &h.state, h.value)
	}
	return record.AppendKeyed(nil, []byte(h.key), value)
}

// move gives a message another state.
func (h *kept) move(s record.State) {
	s.Failures = slices.Clone(s.Failures)
	h.state, h.area, h.place.At = s, memtable.AreaOf(s.Dead), s.At()
}

func newContents(r *reader) *contents {
	c := &contents{reader: r, byNumber: map[uint64]*part{}, memtable: map[engine.ID]*kept{}, names: map[uint32]string{}, ever: map[uint32]string{},
		settings: map[uint32]record.Configure{}, pauses: map[uint32]int64{}, leases: map[engine.ID]record.Lease{}, nextID: engine.ID(r.state.NextID), nextQueue: r.state.NextQueue}
	for _, p := range r.parts {
		if p.table != nil {
			c.byNumber[p.table.Number()] = p
		}
	}
	return c
}

// failed keeps an error of reading an sstable. Damage is a finding instead.
func (c *contents) failed(err error) error {
	if errors.As(err, new(*vfs.DamageError)) {
		return c.wrong(err, "")
	}
	if err != nil {
		c.err = err
	}
	return err
}

// given notes an id of an entry that the log names. That of its message must have been given
// before.
func (c *contents) given(id engine.ID) {
	id = engine.ID(memtable.MessageOf(uint64(id)))
	if id >= c.nextID {
		c.wrongRecord("id %d was not given by then; the next one is %d", id, c.nextID)
		c.nextID = max(c.nextID, id+1)
	}
}

func (c *contents) queue(number uint32) { c.nextQueue = max(c.nextQueue, number+1) }

func (c *contents) hash(h *kept) sstable.Key {
	if h.key == "" {
		return sstable.Key{}
	}
	return c.secret.Key(h.place.Queue, h.key)
}

// spot checks a place in an sstable. ok is false if the message is not known to be there.
func (c *contents) spot(id engine.ID, at record.Spot) (p *part, ok bool, err error) {
	if p, ok = c.byNumber[at.Table]; !ok {
		return nil, false, nil
	}
	if at.At >= p.table.Len() {
		c.wrongRecord("message %d is said to stand at %d in sstable %d, which has %d", id, at.At, at.Table, p.table.Len())
		return nil, false, nil
	}
	e, err := p.table.Get(at.At)
	if err != nil {
		return nil, false, c.failed(err)
	}
	if e.ID != uint64(id) {
		c.wrongRecord("message %d is said to stand at %d in sstable %d, where %d is", id, at.At, at.Table, e.ID)
		return nil, false, nil
	}
	return p, true, nil
}

// living gives all places in sstables where a message is alive. each may delete it there.
func (c *contents) living(id engine.ID, each func(p *part, pos uint32) error) error {
	for _, p := range c.parts {
		for p.table != nil {
			pos, ok, err := p.table.FindID(uint64(id))
			if err == nil && ok {
				err = each(p, pos)
			}
			if err != nil {
				return c.failed(err)
			}
			if !ok || p.table.Alive(pos) {
				break
			}
		}
	}
	return nil
}

// remove removes a message wherever it is.
func (c *contents) remove(id engine.ID, from record.Spot) error {
	c.given(id)
	_, told := c.memtable[id]
	delete(c.memtable, id)
	delete(c.leases, id)
	p, ok, err := c.spot(id, from)
	switch {
	case err != nil:
		return err
	case ok:
		p.table.Kill(from.At)
		return nil
	case told && c.salvage == nil:
		return nil // and nowhere else: together checks that
	}
	return c.living(id, func(p *part, pos uint32) error { p.table.Kill(pos); return nil })
}

// load moves a message from an sstable to the memtable.
func (c *contents) load(p *part, pos uint32) (*kept, error) {
	e, err := p.table.Get(pos)
	if err != nil {
		return nil, err
	}
	h := &kept{place: e.Place, area: p.area()}
	key, value, err := record.ParseKeyed(e.Value)
	if err == nil && h.area.IsMessage() {
		h.state, value, err = record.ParseValue(value)
		h.state.Failures = slices.Clone(h.state.Failures)
	}
	if err != nil {
		return nil, err
	}
	h.key, h.value = string(key), slices.Clone(value)
	p.table.Kill(pos)
	c.memtable[engine.ID(e.ID)] = h
	return h, nil
}

// count counts what each queue holds.
func (c *contents) count() {
	of := map[uint32]*Queue{}
	for n, name := range c.names {
		of[n] = &Queue{Name: name, Number: n}
	}
	c.each(func(queue uint32, area memtable.Area, n int) {
		switch q := of[queue]; area {
		case memtable.Dead:
			q.Dead += int64(n)
		case memtable.Finished:
			q.Finished += int64(n)
		case memtable.Listed:
			q.Listed += int64(n)
		default:
			q.Live += int64(n)
		}
	})
	c.rep.Queues = []Queue{}
	for _, q := range of {
		c.rep.Queues = append(c.rep.Queues, *q)
	}
	slices.SortFunc(c.rep.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
}

// each gives the numbers of live entries by queue and area, each number as a sum of several
// calls.
func (c *contents) each(fn func(queue uint32, area memtable.Area, n int)) {
	for _, h := range c.memtable {
		fn(h.place.Queue, h.area, 1)
	}
	for _, p := range c.parts {
		if p.table == nil {
			continue
		}
		for _, q := range p.table.Queues() {
			if n := p.table.Count(q.From, q.To); n > 0 {
				fn(q.Queue, p.area(), n)
			}
		}
	}
}
