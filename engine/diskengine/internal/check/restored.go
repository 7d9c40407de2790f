package check

import (
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// restored is what a damaged store holds by the runs and what can be read of the log. It is a
// record.Applier.
type restored struct {
	*rescue
	recent   map[engine.ID]*kept
	queues   map[uint32]string
	settings map[uint32]record.Configure
	pauses   map[uint32]int64
	leases   map[engine.ID]record.Lease
	spares   map[uint32]map[engine.ID]struct{}
	gaps     int
	passed   int // purges that were not done again
	err      error
}

// kept is a message that the log tells of, or a key that is remembered, as a run would have it.
type kept struct {
	place run.Place
	area  recent.Area
	key   string
	state record.State
	value []byte // what follows the key and, of a message, the state
}

func (h *kept) keyed() []byte {
	value := h.value
	if h.area != recent.Finished {
		value = record.AppendValue(nil, &h.state, h.value)
	}
	return record.AppendKeyed(nil, []byte(h.key), value)
}

// at says where a message stands by its state.
func (h *kept) at(s record.State) {
	s.LastError = slices.Clone(s.LastError)
	h.state, h.area, h.place.At = s, areaOf(&s), s.Due
	if s.Dead {
		h.place.At = s.Died
	}
}

func newRestored(r *rescue) *restored {
	return &restored{rescue: r, recent: map[engine.ID]*kept{}, queues: map[uint32]string{}, settings: map[uint32]record.Configure{},
		pauses: map[uint32]int64{}, leases: map[engine.ID]record.Lease{}, spares: map[uint32]map[engine.ID]struct{}{}}
}

func (m *restored) gap(wal.Gap) error {
	m.gaps++
	clear(m.spares)
	return nil
}

// failed keeps an error, which ends it.
func (m *restored) failed(err error) error {
	if err != nil && m.err == nil {
		m.err = err
	}
	return err
}

func (m *restored) queue(number uint32) { m.next.NextQueue = max(m.next.NextQueue, number+1) }

// living gives all places in runs where a message is alive.
func (m *restored) living(id engine.ID, each func(p *part, pos uint32) error) error {
	for _, p := range m.parts {
		for p.run != nil {
			pos, ok, err := p.run.FindID(uint64(id))
			if err == nil && ok {
				err = each(p, pos)
			}
			if err != nil {
				return m.failed(err)
			}
			if !ok || p.run.Alive(pos) {
				break
			}
		}
	}
	return nil
}

// leave takes a message away from where it stood.
func (m *restored) leave(id engine.ID) error {
	m.given(id)
	delete(m.recent, id)
	delete(m.leases, id)
	return m.living(id, func(p *part, pos uint32) error { p.run.Kill(pos); return nil })
}

// Put implements record.Applier.
func (m *restored) Put(p *record.Put) error {
	if whole(p.Content) != nil {
		return nil
	}
	if err := m.leave(p.ID); err != nil {
		return err
	}
	m.queue(p.Queue)
	h := &kept{place: run.Place{Queue: p.Queue, ID: uint64(p.ID)}, key: string(p.Key), value: slices.Clone(p.Content)}
	h.at(p.State)
	m.recent[p.ID] = h
	return nil
}

// Move implements record.Applier. A message whose put is lost moves from the run in which it stood
// before.
func (m *restored) Move(r *record.Move) error {
	m.given(r.ID)
	delete(m.leases, r.ID)
	if h, ok := m.recent[r.ID]; ok {
		if h.area != recent.Finished {
			h.at(r.State)
		}
		return nil
	}
	return m.living(r.ID, func(p *part, pos uint32) error {
		if p.keys() {
			return nil
		}
		h, err := m.taken(p, pos)
		if err == nil {
			h.at(r.State)
		}
		return err
	})
}

// taken takes a message out of a run.
func (m *restored) taken(p *part, pos uint32) (*kept, error) {
	e, err := p.run.Get(pos, nil)
	if err != nil {
		return nil, err
	}
	h := &kept{place: e.Place, area: recent.Area(p.is.Area)}
	key, value, err := record.ParseKeyed(e.Value)
	if err == nil && !p.keys() {
		h.state, value, err = record.ParseValue(value)
		h.state.LastError = slices.Clone(h.state.LastError)
	}
	if err != nil {
		return nil, err
	}
	h.key, h.value = string(key), slices.Clone(value)
	p.run.Kill(pos)
	m.recent[engine.ID(e.ID)] = h
	return h, nil
}

// Lease implements record.Applier.
func (m *restored) Lease(l *record.Lease) error {
	m.given(l.ID)
	m.leases[l.ID] = *l
	return nil
}

// Extend implements record.Applier.
func (m *restored) Extend(x *record.Extend) error {
	if l, ok := m.leases[x.ID]; ok {
		l.Deadline = x.Deadline
		m.leases[x.ID] = l
	}
	return nil
}

// Gone implements record.Applier.
func (m *restored) Gone(g *record.Gone) error { return m.leave(g.ID) }

// Finish implements record.Applier.
func (m *restored) Finish(f *record.Finish) error {
	if err := m.leave(f.ID); err != nil {
		return err
	}
	m.queue(f.Queue)
	m.recent[f.ID] = &kept{place: run.Place{Queue: f.Queue, At: f.Forgotten, ID: uint64(f.ID)}, area: recent.Finished, key: string(f.Key),
		value: (&record.Trace{Due: f.Due, Ending: f.Ending, Ended: f.Ended}).Append(nil)}
	return nil
}

// Name implements record.Applier.
func (m *restored) Name(n *record.Name) error {
	m.queue(n.Queue)
	if len(n.Name) > 0 {
		m.queues[n.Queue] = string(n.Name)
		return nil
	}
	delete(m.queues, n.Queue)
	delete(m.settings, n.Queue)
	delete(m.pauses, n.Queue)
	return nil
}

// Configure implements record.Applier.
func (m *restored) Configure(c *record.Configure) error {
	m.queue(c.Queue)
	m.settings[c.Queue] = *c
	return nil
}

// Pause implements record.Applier.
func (m *restored) Pause(p *record.Pause) error {
	m.queue(p.Queue)
	m.pauses[p.Queue] = p.Until
	return nil
}

// Spare implements record.Applier.
func (m *restored) Spare(s *record.Spare) error {
	if s.First {
		m.spares[s.Queue] = map[engine.ID]struct{}{}
	}
	if m.spares[s.Queue] == nil {
		return nil // the first ones are lost
	}
	for _, id := range s.IDs {
		m.spares[s.Queue][id] = struct{}{}
	}
	return nil
}

// Purge implements record.Applier. Behind a gap, or where the log is not known from where it counts, it
// is not known who was spared: then nobody is taken.
func (m *restored) Purge(p *record.Purge) error {
	m.given(p.UpTo)
	spares := m.spares[p.Queue]
	delete(m.spares, p.Queue)
	if m.gaps > 0 || m.rebuilt {
		m.passed++
		return nil
	}
	takes := takenBy(p, spares, func(id engine.ID) (int64, bool) {
		l, leased := m.leases[id]
		return l.Deadline, leased
	})
	for id, h := range m.recent {
		if h.place.Queue == p.Queue && takes(h.area, id) {
			delete(m.recent, id)
			delete(m.leases, id)
		}
	}
	for _, x := range m.parts {
		if x.run == nil {
			continue
		}
		err := purgeRun(x.run, p.Queue, recent.Area(x.is.Area), takes, func(id engine.ID) { delete(m.leases, id) })
		if err != nil {
			return m.failed(err)
		}
	}
	return nil
}
