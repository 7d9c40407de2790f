package check

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
	"github.com/tarryhq/tarry/engine/logengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/logengine/internal/marks"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/record"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
	"github.com/tarryhq/tarry/engine/logengine/internal/wal"
)

// nameReader takes the names of queues from a log.
type nameReader struct {
	record.Applier
	names map[uint32]string
}

func (n *nameReader) Put(*record.Put) error             { return nil }
func (n *nameReader) Move(*record.Move) error           { return nil }
func (n *nameReader) Lease(*record.Lease) error         { return nil }
func (n *nameReader) Extend(*record.Extend) error       { return nil }
func (n *nameReader) Gone(*record.Gone) error           { return nil }
func (n *nameReader) Finish(*record.Finish) error       { return nil }
func (n *nameReader) Configure(*record.Configure) error { return nil }
func (n *nameReader) Pause(*record.Pause) error         { return nil }
func (n *nameReader) Purge(*record.Purge) error         { return nil }
func (n *nameReader) Spare(*record.Spare) error         { return nil }

// Name notes a name; one that is taken away is still one to tell of.
func (n *nameReader) Name(x *record.Name) error {
	if len(x.Name) > 0 {
		n.names[x.Queue] = string(x.Name)
	}
	return nil
}

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
	if !p.Spares {
		spares = nil
	}
	takes := func(a recent.Area, id engine.ID) bool {
		if _, spared := spares[id]; spared || id > p.UpTo {
			return false
		}
		switch a {
		case recent.Dead:
			return p.Also&engine.PurgeDead != 0
		case recent.Finished:
			return p.Also&engine.PurgeFinished != 0
		}
		l, leased := m.leases[id]
		return !leased || l.Deadline <= p.At
	}
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
		q, ok := x.run.Queue(p.Queue)
		if !ok {
			continue
		}
		s := x.run.Scan(q.From, q.To)
		for s.Next() {
			if e := s.Entry(); takes(recent.Area(x.is.Area), engine.ID(e.ID)) {
				x.run.Kill(e.Pos)
				delete(m.leases, engine.ID(e.ID))
			}
		}
		if err := errors.Join(s.Err(), s.Close()); err != nil {
			return m.failed(err)
		}
	}
	return nil
}

// together has nobody stand twice.
func (m *restored) together() error {
	if m.passed > 0 {
		m.note("%d purges were not done again: it is not known whom they spared; what they took may be handed out again", m.passed)
	}
	if err := m.ids(); err != nil {
		return err
	}
	for _, a := range []recent.Area{recent.Live, recent.Finished} {
		if err := m.keys(a); err != nil {
			return err
		}
	}
	m.nameless()
	return nil
}

// standing are the runs that there are, and their parts.
func (m *restored) standing(want func(*part) bool) (runs []*run.Run, of []*part) {
	for _, p := range m.parts {
		if p.run != nil && want(p) {
			runs, of = append(runs, p.run), append(of, p)
		}
	}
	return runs, of
}

// ids keeps of each id what the log tells, else what the newest run has: where it is not known which
// runs count, dead or alive.
func (m *restored) ids() error {
	runs, of := m.standing(func(*part) bool { return true })
	type spot struct {
		at  int
		pos uint32
	}
	var same []spot
	last := uint64(0)
	settle := func() {
		best := -1
		for _, s := range same {
			if (m.rebuilt || runs[s.at].Alive(s.pos)) && (best < 0 || of[s.at].number > of[best].number) {
				best = s.at
			}
		}
		if m.recent[engine.ID(last)] != nil {
			best = -1
		}
		for _, s := range same {
			if s.at != best {
				runs[s.at].Kill(s.pos)
			}
		}
		same = same[:0]
	}
	err := run.EachID(runs, func(id uint64, at int, pos uint32) error {
		return m.paced(func() error {
			if id != last {
				settle()
			}
			last = id
			m.given(engine.ID(id))
			same = append(same, spot{at, pos})
			return nil
		})
	})
	settle()
	return err
}

// keys keeps each key of an area with the message that was pushed last. A message that loses its key is
// kept without; a key that is remembered twice once.
func (m *restored) keys(area recent.Area) error {
	type owner struct {
		id   engine.ID
		part *part
		pos  uint32
	}
	var lost []owner
	has := map[run.Key]engine.ID{}
	for _, id := range slices.Sorted(maps.Keys(m.recent)) {
		h := m.recent[id]
		if h.area != area || h.key == "" {
			continue
		}
		key := m.secret.Key(h.place.Queue, h.key)
		if other, ok := has[key]; ok {
			lost = append(lost, owner{id: other})
		}
		has[key] = id
	}
	runs, of := m.standing(func(p *part) bool { return recent.Area(p.is.Area) == area })
	var last run.Key
	var holder owner
	err := run.EachKey(runs, func(key run.Key, at int, pos uint32) error {
		return m.paced(func() error {
			if !runs[at].Alive(pos) {
				return nil
			}
			is, told := owner{part: of[at], pos: pos}, has[key]
			if key != last {
				last, holder = key, owner{id: told}
				if told == 0 {
					holder = is // alone, so far
					return nil
				}
			}
			for _, o := range []*owner{&is, &holder} {
				if o.id != 0 {
					continue
				}
				e, err := o.part.run.Get(o.pos, nil)
				if err != nil {
					return err
				}
				o.id = engine.ID(e.ID)
			}
			if holder.id > is.id {
				is, holder = holder, is
			}
			lost = append(lost, holder)
			holder = is
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, o := range lost {
		if o.part != nil && area == recent.Finished {
			o.part.run.Kill(o.pos)
			continue
		}
		if o.part != nil {
			if _, err := m.taken(o.part, o.pos); err != nil {
				return err
			}
		}
		if area == recent.Finished {
			delete(m.recent, o.id)
		} else {
			m.recent[o.id].key = ""
		}
	}
	if len(lost) > 0 && area == recent.Live {
		m.note("%d messages whose keys newer ones have are kept without a key: most had been acked or cancelled", len(lost))
	}
	return nil
}

// nameless gives names to queues that have lost theirs.
func (m *restored) nameless() {
	lives := map[uint32]int{}
	for _, h := range m.recent {
		lives[h.place.Queue]++
	}
	for _, p := range m.parts {
		if p.run == nil {
			continue
		}
		for _, q := range p.run.Queues() {
			lives[q.Queue] += p.run.Count(q.From, q.To)
		}
	}
	taken := map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(m.queues)) {
		if taken[m.queues[n]] { // the record that the first one had gone is lost
			delete(m.queues, n)
		} else {
			taken[m.queues[n]] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lives)) {
		m.queue(n)
		if _, named := m.queues[n]; named || lives[n] == 0 {
			continue
		}
		name := fmt.Sprint("lost-", n)
		if old := m.names[n]; old != "" && !taken[old] {
			name = old
		}
		for taken[name] {
			name += "-"
		}
		taken[name], m.queues[n] = true, name
		m.note("the name of queue number %d, which holds %d, is not known: it is called %s", n, lives[n], name)
	}
}

// skipped is by how much ids go on beyond what is known of them, where something of the log is missing:
// nobody is to get the id of a message of which only others know.
const skipped = 1 << 20

// write makes all of it durable but for the manifest.
func (m *restored) write() error {
	for area := range recent.Finished + 1 {
		if err := m.writeRecent(area); err != nil {
			return err
		}
	}
	if err := m.writeMarks(); err != nil {
		return err
	}
	if m.broken || m.rebuilt {
		m.next.NextID += skipped
	}
	return m.writeLog()
}

// writeRecent writes a run of what the log tells of an area.
func (m *restored) writeRecent(area recent.Area) error {
	var all []*kept
	for _, h := range m.recent {
		if h.area == area {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *kept) int { return a.place.Compare(b.place) })
	number := m.number()
	w, err := run.Create(m.disk.FS, m.path(runsName), number, &run.Config{ID: m.state.Store, Pace: m.pace})
	if err != nil {
		return err
	}
	for _, h := range all {
		key := run.Key{}
		if h.key != "" {
			key = m.secret.Key(h.place.Queue, h.key)
		}
		if err := w.Add(h.place, key, h.keyed()); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	made, err := w.Finish()
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	m.parts = append(m.parts, &part{number: number, run: made, is: manifest.Run{Number: number, Area: uint8(area)}})
	return nil
}

// writeMarks writes who has died, and lists the runs in which somebody lives.
func (m *restored) writeMarks() error {
	var died []*run.Run
	for _, p := range m.parts {
		if p.run == nil {
			continue
		}
		n := p.run.Count(0, p.run.Len())
		if n == 0 {
			continue
		}
		is := manifest.Run{Number: p.run.Number(), Area: p.is.Area, Entries: p.run.Len(), Alive: uint32(n), Bytes: uint64(p.run.Bytes())}
		if is.Alive < is.Entries {
			died = append(died, p.run)
		}
		m.next.Runs = append(m.next.Runs, is)
	}
	slices.SortFunc(m.next.Runs, func(a, b manifest.Run) int { return cmp.Compare(a.Number, b.Number) })
	if len(died) == 0 {
		return nil
	}
	number := m.number()
	if _, err := marks.Write(m.disk.FS, m.path(runsName), number, m.state.Store, died, m.pace); err != nil {
		return err
	}
	for i := range m.next.Runs {
		if r := &m.next.Runs[i]; r.Alive < r.Entries {
			r.Marks = number
		}
	}
	return nil
}

// writeLog writes a log with what is in no run.
func (m *restored) writeLog() (err error) {
	m.next.Log = m.number()
	dir := m.path(manifest.LogName(m.next.Log))
	if err := disk.MkdirAll(m.disk.FS, dir); err != nil {
		return err
	}
	log, _, err := wal.Open(m.disk.FS, dir, &wal.Config{ID: m.state.Store, SegmentBytes: m.cfg.segment, Spares: 1, RetryFor: -1,
		Logger: slog.New(slog.DiscardHandler)}, 0, func(wal.Entry) error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, n := range slices.Sorted(maps.Keys(m.queues)) {
		b := (&record.Name{Queue: n, Name: []byte(m.queues[n])}).Append(nil)
		if c, ok := m.settings[n]; ok {
			b = c.Append(b)
		}
		if until := m.pauses[n]; until != 0 {
			b = (&record.Pause{Queue: n, Until: until}).Append(b)
		}
		if _, err := log.Append(record.Group, b); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.leases)) {
		spot, err := m.leased(id)
		if err != nil {
			return err
		}
		if spot.Run == 0 {
			continue
		}
		l := m.leases[id]
		l.From = spot
		if _, err := log.Append(record.Group, l.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// leased is where a message stands that is leased; nowhere, if it is not.
func (m *restored) leased(id engine.ID) (at record.Spot, err error) {
	err = m.living(id, func(p *part, pos uint32) error {
		if recent.Area(p.is.Area) == recent.Live {
			at = record.Spot{Run: p.run.Number(), At: pos}
		}
		return nil
	})
	return at, err
}
