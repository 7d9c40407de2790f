package check

import (
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// mostEntry is the longest entry that any log may have.
const mostEntry = 1 << 30

// replayed is what a store holds once its log has been replayed: bits of runs, and what the log
// tells itself. It is a record.Applier.
type replayed struct {
	*checker
	byNumber map[uint64]int // index of a run
	recent   map[engine.ID]message
	names    map[uint32]string
	leases   map[engine.ID]int64               // deadlines
	spares   map[uint32]map[engine.ID]struct{} // who the next purge of a queue does not touch

	nextID engine.ID // the least that was never given
	at     wal.Pos   // of the entry of the log that is being taken in
	err    error     // of the file system
}

// message is one that the log tells of, or a key that is remembered.
type message struct {
	queue uint32
	area  recent.Area
	key   run.Key // zero: none
}

func newReplayed(c *checker) *replayed {
	m := &replayed{checker: c, byNumber: map[uint64]int{}, recent: map[engine.ID]message{}, names: map[uint32]string{},
		leases: map[engine.ID]int64{}, spares: map[uint32]map[engine.ID]struct{}{}}
	m.nextID = engine.ID(c.state.NextID)
	for i, r := range c.runs {
		m.byNumber[r.Number()] = i
	}
	return m
}

// replay reads the log.
func (m *replayed) replay() error {
	dir := m.logDir()
	found, err := wal.Read(m.fs, dir, &wal.Config{ID: m.state.Store, Begun: m.state.Begun, MaxEntry: mostEntry}, wal.Pos(m.state.Replay), func(e wal.Entry) error {
		m.at = e.Start
		err := record.Each(e.Kind, e.Bytes, m)
		switch {
		case m.err != nil:
			return m.err
		case errors.Is(err, record.ErrNewer):
			return err
		case err != nil:
			m.wrongRecord("%v", err)
		}
		return m.pace(len(e.Bytes))
	})
	m.rep.Records, m.rep.Torn = found.Entries, found.Torn
	return m.wrong(err, dir, mendLog)
}

func (m *replayed) wrongRecord(format string, args ...any) {
	m.rep.add(m.logDir(), int64(m.at), mendRecord, "%s", fmt.Sprintf(format, args...))
}

// failed keeps an error that came of reading a run; damage is a finding.
func (m *replayed) failed(err error) error {
	var damage *disk.DamageError
	if errors.As(err, &damage) {
		return m.wrong(err, "", mendRun)
	}
	m.err = err
	return err
}

// given checks that an id was ever given.
func (m *replayed) given(id engine.ID) {
	if id >= m.nextID {
		m.wrongRecord("id %d was not given by then; the next one is %d", id, m.nextID)
	}
}

// Put implements record.Applier.
func (m *replayed) Put(p *record.Put) error {
	if p.New {
		if _, ok := m.recent[p.ID]; ok {
			m.wrongRecord("message %d is pushed twice", p.ID)
		}
		m.nextID = max(m.nextID, p.ID+1)
	} else {
		m.given(p.ID)
		if err := m.remove(p.ID, p.From); err != nil {
			return err
		}
	}
	if err := whole(p.Content); err != nil {
		m.wrongRecord("message %d: %v", p.ID, err)
	}
	m.recent[p.ID] = message{queue: p.Queue, area: areaOf(&p.State), key: m.key(p.Queue, p.Key)}
	return nil
}

func (m *replayed) key(queue uint32, key []byte) run.Key {
	if len(key) == 0 {
		return run.Key{}
	}
	return m.secret.Key(queue, string(key))
}

func areaOf(s *record.State) recent.Area {
	if s.Dead {
		return recent.Dead
	}
	return recent.Live
}

// Move implements record.Applier.
func (m *replayed) Move(r *record.Move) error {
	if was, ok := m.recent[r.ID]; ok {
		delete(m.leases, r.ID)
		was.area = areaOf(&r.State)
		m.recent[r.ID] = was
		return nil
	}
	i, _, ok, err := m.find(r.ID)
	if ok {
		m.wrongRecord("message %d is moved, and stands in run %d: the log does not tell its content", r.ID, m.runs[i].Number())
	}
	return err
}

// Lease implements record.Applier.
func (m *replayed) Lease(l *record.Lease) error {
	m.leases[l.ID] = l.Deadline
	_, _, err := m.spot(l.ID, l.From)
	return err
}

// Extend implements record.Applier.
func (m *replayed) Extend(x *record.Extend) error {
	if _, ok := m.leases[x.ID]; ok {
		m.leases[x.ID] = x.Deadline
	}
	return nil
}

// Gone implements record.Applier.
func (m *replayed) Gone(g *record.Gone) error { return m.remove(g.ID, g.From) }

// Finish implements record.Applier.
func (m *replayed) Finish(f *record.Finish) error {
	m.given(f.ID)
	m.recent[f.ID] = message{queue: f.Queue, area: recent.Finished, key: m.key(f.Queue, f.Key)}
	return nil
}

// Name implements record.Applier.
func (m *replayed) Name(n *record.Name) error {
	if len(n.Name) == 0 {
		delete(m.names, n.Queue)
	} else {
		m.names[n.Queue] = string(n.Name)
	}
	return nil
}

// Configure implements record.Applier.
func (m *replayed) Configure(*record.Configure) error { return nil }

// Pause implements record.Applier.
func (m *replayed) Pause(*record.Pause) error { return nil }

// Spare implements record.Applier.
func (m *replayed) Spare(s *record.Spare) error {
	if s.First || m.spares[s.Queue] == nil {
		m.spares[s.Queue] = map[engine.ID]struct{}{}
	}
	for _, id := range s.IDs {
		m.spares[s.Queue][id] = struct{}{}
	}
	return nil
}

// Purge implements record.Applier.
func (m *replayed) Purge(p *record.Purge) error {
	spares := m.spares[p.Queue]
	delete(m.spares, p.Queue)
	takes := takenBy(p, spares, func(id engine.ID) (int64, bool) {
		deadline, leased := m.leases[id]
		return deadline, leased
	})
	for id, is := range m.recent {
		if is.queue == p.Queue && takes(is.area, id) {
			delete(m.recent, id)
			delete(m.leases, id)
		}
	}
	for i, r := range m.runs {
		err := purgeRun(r, p.Queue, recent.Area(m.areas[i]), takes, func(id engine.ID) { delete(m.leases, id) })
		if err != nil {
			return m.failed(err)
		}
	}
	return nil
}

// spot looks at who stands at a place in a run. ok is false if the run is not there.
func (m *replayed) spot(id engine.ID, at record.Spot) (r *run.Run, ok bool, err error) {
	m.named(at.Run)
	i, ok := m.byNumber[at.Run]
	if !ok {
		return nil, false, nil
	}
	r = m.runs[i]
	if at.At >= r.Len() {
		m.wrongRecord("message %d is said to stand at %d in run %d, which has %d", id, at.At, at.Run, r.Len())
		return r, true, nil
	}
	e, err := r.Get(at.At, nil)
	if err != nil {
		return r, true, m.failed(err)
	}
	if e.ID != uint64(id) {
		m.wrongRecord("message %d is said to stand at %d in run %d, where %d is", id, at.At, at.Run, e.ID)
	}
	return r, true, nil
}

// remove takes a message away wherever it stands.
func (m *replayed) remove(id engine.ID, from record.Spot) error {
	_, told := m.recent[id]
	delete(m.recent, id)
	delete(m.leases, id)
	r, ok, err := m.spot(id, from)
	switch {
	case err != nil:
		return err
	case ok:
		r.Kill(from.At)
		return nil
	case told:
		return nil // and nowhere else: together sees to that
	}
	i, pos, ok, err := m.find(id)
	if ok {
		m.runs[i].Kill(pos)
	}
	return err
}

// find finds who lives in a run.
func (m *replayed) find(id engine.ID) (i int, pos uint32, ok bool, err error) {
	for i, r := range m.runs {
		pos, ok, err := r.FindID(uint64(id))
		if err != nil {
			return 0, 0, false, m.failed(err)
		}
		if ok {
			return i, pos, true, nil
		}
	}
	return 0, 0, false, nil
}
