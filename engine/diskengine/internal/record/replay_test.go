package record

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// stored is a message or a remembered key as it stands.
type stored struct {
	Put
	finish bool // a key that is remembered; the times are in State
}

// table is an immutable file of messages, with a bit for each that has died.
type table struct {
	of   []stored
	dead []bool
}

func (r *table) clone() *table { return &table{r.of, slices.Clone(r.dead)} }

// store is the least that holds what records say: sstables, a memtable, and tables.
type store struct {
	tables map[uint64]*table
	active map[engine.ID]stored
	sealed map[engine.ID]stored
	leases map[engine.ID]Lease
	names  map[uint32]string
	rules  map[uint32]uint64
	pauses map[uint32]int64
}

func newStore() *store {
	return &store{
		tables: map[uint64]*table{}, active: map[engine.ID]stored{}, sealed: map[engine.ID]stored{}, leases: map[engine.ID]Lease{},
		names: map[uint32]string{}, rules: map[uint32]uint64{}, pauses: map[uint32]int64{},
	}
}

// spot finds a message in the sstables.
func (s *store) spot(id engine.ID, hint Spot) (Spot, bool) {
	if r := s.tables[hint.Table]; r != nil {
		return hint, !r.dead[hint.At]
	}
	for n, r := range s.tables {
		for i, m := range r.of {
			if m.ID == id && !r.dead[i] {
				return Spot{n, uint32(i)}, true
			}
		}
	}
	return Spot{}, false
}

// remove takes a message away wherever it stands.
func (s *store) remove(id engine.ID, hint Spot) {
	delete(s.active, id)
	delete(s.sealed, id)
	delete(s.leases, id)
	if at, ok := s.spot(id, hint); ok {
		s.tables[at.Table].dead[at.At] = true
	}
}

func (s *store) find(id engine.ID, hint Spot) (m stored, ok bool) {
	if m, ok = s.active[id]; ok {
		return m, true
	}
	if m, ok = s.sealed[id]; ok {
		return m, true
	}
	at, ok := s.spot(id, hint)
	if ok {
		m = s.tables[at.Table].of[at.At]
	}
	return m, ok
}

func (s *store) Put(p *Put) error {
	if !p.New {
		s.remove(p.ID, p.From)
	}
	m := stored{Put: *p}
	m.New, m.From = false, Spot{}
	m.Key, m.Content = slices.Clone(p.Key), slices.Clone(p.Content)
	s.active[p.ID] = m
	return nil
}

func (s *store) Move(m *Move) error {
	if was, ok := s.active[m.ID]; ok {
		was.State = m.State
		s.active[m.ID] = was
		delete(s.leases, m.ID)
	}
	return nil
}

func (s *store) Lease(l *Lease) error {
	if _, ok := s.find(l.ID, l.From); ok {
		was := *l
		was.From = Spot{}
		s.leases[l.ID] = was
	}
	return nil
}

func (s *store) Gone(g *Gone) error {
	id := g.ID
	if g.Listed {
		id |= 1 << 63
	}
	s.remove(id, g.From)
	return nil
}

func (s *store) List(l *List) error {
	s.active[l.ID|1<<63] = stored{Put: Put{ID: l.ID | 1<<63, Queue: l.Queue, Key: slices.Clone(l.Key), State: State{Due: l.Ended}}, finish: true}
	return nil
}

func (s *store) Finish(f *Finish) error {
	s.remove(f.ID, Spot{})
	s.active[f.ID] = stored{Put: Put{ID: f.ID, Queue: f.Queue, Key: slices.Clone(f.Key), State: State{Due: f.Forgotten}}, finish: true}
	return nil
}

func (s *store) Name(n *Name) error {
	if s.names[n.Queue] = string(n.Name); len(n.Name) == 0 {
		delete(s.names, n.Queue)
		delete(s.rules, n.Queue)
		delete(s.pauses, n.Queue)
	}
	return nil
}

func (s *store) Configure(c *Configure) error { s.rules[c.Queue] = c.Revision; return nil }

func (s *store) Pause(p *Pause) error { s.pauses[p.Queue] = p.Until; return nil }

// all is what lives, wherever it stands.
func (s *store) all() map[engine.ID]stored {
	all := maps.Clone(s.active)
	maps.Copy(all, s.sealed)
	for _, r := range s.tables {
		for i, m := range r.of {
			if !r.dead[i] {
				all[m.ID] = m
			}
		}
	}
	return all
}

// manifest is what a store is opened with.
type manifest struct {
	tables map[uint64]*table
	from   int // in the log
}

// life is a store that lives through a random history, and its log.
type life struct {
	*store
	rng     *rand.Rand
	log     [][]byte
	mf      manifest
	sealAt  int
	sealing []stored // what the sealed memtable held
	id      engine.ID
	table   uint64
}

func (l *life) do(records ...written) {
	l.log = append(l.log, group(records...))
	if err := Each(Group, l.log[len(l.log)-1], l.store); err != nil {
		panic(err)
	}
}

// any returns a message, and where it stands in an sstable.
func (l *life) any(want func(stored) bool) (stored, Spot, bool) {
	all := l.all()
	ids := slices.Sorted(maps.Keys(all))
	ids = slices.DeleteFunc(ids, func(id engine.ID) bool { return !want(all[id]) })
	if len(ids) == 0 {
		return stored{}, Spot{}, false
	}
	m := all[ids[l.rng.IntN(len(ids))]]
	at, _ := l.spot(m.ID, Spot{})
	return m, at, true
}

// becomes writes a new state of a message, as who has it in that place must.
func (l *life) becomes(m stored, at Spot, s State) {
	if _, ok := l.active[m.ID]; ok {
		l.do(&Move{m.ID, s})
		return
	}
	p := m.Put
	p.From, p.State = at, s
	l.do(&p)
}

func (l *life) step() {
	message := func(m stored) bool { return !m.finish }
	waits := func(m stored) bool { _, leased := l.leases[m.ID]; return message(m) && !m.Dead && !leased }
	leased := func(m stored) bool { _, leased := l.leases[m.ID]; return leased }
	due := l.rng.Int64N(1000)
	switch op := l.rng.IntN(100); {
	case op < 30:
		var g []written
		for range 1 + l.rng.IntN(3) {
			l.id++
			q := 1 + l.rng.Uint32N(3)
			g = append(g, &Put{ID: l.id, Queue: q, New: true, Key: fmt.Append(nil, "k", l.id), State: State{Due: due, Expires: Never}, Content: fmt.Append(nil, "c", l.id)})
		}
		l.do(g...)
	case op < 45:
		if m, at, ok := l.any(waits); ok {
			l.do(&Lease{ID: m.ID, From: at, Deadline: due, Attempt: m.Attempt + 1, Remote: l.rng.IntN(2) == 0})
		}
	case op < 50:
		if m, _, ok := l.any(leased); ok {
			x := l.leases[m.ID]
			x.Deadline = due
			l.do(&x)
		}
	case op < 58: // retry, lapse, bury
		if m, at, ok := l.any(leased); ok {
			l.becomes(m, at, State{Due: due, Expires: Never, Attempt: l.leases[m.ID].Attempt, Dead: l.rng.IntN(3) == 0})
		}
	case op < 64: // reschedule, redrive
		if m, at, ok := l.any(func(m stored) bool { return waits(m) || m.Dead }); ok {
			l.becomes(m, at, State{Due: due, Expires: Never})
		}
	case op < 68: // replace
		if m, at, ok := l.any(waits); ok {
			p := m.Put
			p.From, p.State, p.Content = at, State{Due: due, Expires: Never}, fmt.Append(nil, "r", due)
			l.do(&p)
		}
	case op < 78: // ack, cancel, expiry
		if m, at, ok := l.any(message); ok {
			g := []written{&Gone{ID: m.ID, From: at}}
			if l.rng.IntN(2) == 0 {
				g = append(g, &Finish{ID: m.ID, Queue: m.Queue, Key: m.Key, Ending: engine.Acked, Forgotten: due})
			}
			if l.rng.IntN(2) == 0 {
				g = append(g, &List{ID: m.ID, Queue: m.Queue, Key: m.Key, Ended: due, Value: listed.Append(nil)})
			}
			l.do(g...)
		}
	case op < 80: // a key is forgotten, or a finished message
		if m, at, ok := l.any(func(m stored) bool { return m.finish }); ok {
			l.do(&Gone{ID: m.ID &^ (1 << 63), From: at, Listed: m.ID>>63 == 1})
		}
	case op < 86:
		q := 1 + l.rng.Uint32N(3)
		l.do(&Name{q, fmt.Append(nil, "q", q)}, &Configure{Queue: q, Revision: uint64(due)}, &Pause{q, due})
	case op < 87:
		l.do(&Name{Queue: 1 + l.rng.Uint32N(3)})
	case op < 91:
		l.seal()
	case op < 95:
		l.flush()
	case op < 97:
		l.merge()
	default:
		l.checkpoint(l.rng)
	}
}

// seal begins a new memtable, and writes again what stands in tables.
func (l *life) seal() {
	if l.sealing != nil {
		return
	}
	l.sealAt, l.sealed, l.active = len(l.log), l.active, map[engine.ID]stored{}
	l.sealing = append([]stored{}, slices.Collect(maps.Values(l.sealed))...)
	for _, lease := range l.leases {
		l.do(&lease)
	}
	for q, name := range l.names {
		l.do(&Name{q, []byte(name)})
	}
	for q, rev := range l.rules {
		l.do(&Configure{Queue: q, Revision: rev})
	}
	for q, until := range l.pauses {
		l.do(&Pause{q, until})
	}
}

// flush makes an sstable of the sealed memtable. Who has left that since has its bit set.
func (l *life) flush() {
	if l.sealing == nil {
		return
	}
	l.table++
	r := &table{of: l.sealing, dead: make([]bool, len(l.sealing))}
	for i, m := range l.sealing {
		_, still := l.sealed[m.ID]
		r.dead[i] = !still
	}
	l.tables[l.table], l.sealed, l.sealing = r, map[engine.ID]stored{}, nil
	l.install(l.sealAt)
}

// merge makes one sstable of all.
func (l *life) merge() {
	m := new(table)
	for _, r := range l.tables {
		for i, s := range r.of {
			if !r.dead[i] {
				m.of, m.dead = append(m.of, s), append(m.dead, false)
			}
		}
	}
	l.table++
	l.tables = map[uint64]*table{l.table: m}
	l.install(l.mf.from)
}

func (l *life) install(from int) {
	l.mf = manifest{tables: map[uint64]*table{}, from: from}
	for n, r := range l.tables {
		l.mf.tables[n] = r.clone()
	}
}

// checkpoint makes some of the deaths since durable.
func (l *life) checkpoint(rng *rand.Rand) {
	for n, r := range l.mf.tables {
		for i, dead := range l.tables[n].dead {
			if dead && rng.IntN(2) == 0 {
				r.dead[i] = true
			}
		}
	}
}

// TestReplay: a store that is opened with a manifest, whatever deaths that already knows, and
// the log from there on holds exactly what the one did that wrote them.
func TestReplay(t *testing.T) {
	seed := rand.Uint64()
	tables, again := 0, 0
	for i := range uint64(40) {
		l := &life{store: newStore(), rng: rand.New(rand.NewPCG(seed, i))}
		for range 250 {
			l.step()
			if l.rng.IntN(10) > 0 {
				continue
			}
			s := newStore()
			for n, r := range l.mf.tables {
				s.tables[n] = r.clone()
			}
			for _, b := range l.log[l.mf.from:] {
				if err := Each(Group, b, s); err != nil {
					t.Fatal(err)
				}
			}
			tables, again = tables+len(s.tables), again+1
			if got, want := s.view(), l.view(); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, history %d: opened with\n%v\nwas\n%v", seed, i, got, want)
			}
		}
	}
	if tables < again {
		t.Errorf("seed %d: %d openings met %d sstables", seed, again, tables)
	}
}

// view is all that a store holds.
func (s *store) view() map[string]any {
	return map[string]any{"messages": s.all(), "leases": s.leases, "names": s.names, "rules": s.rules, "pauses": s.pauses}
}
