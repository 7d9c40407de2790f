package verify

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

const (
	dir       = "/store"
	tablesDir = dir + "/" + manifest.TablesName
	logDir    = dir + "/" + manifest.LogName
	store     = 7
)

var errTest = errors.New("of the test")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tableConfig() *sstable.Config { return &sstable.Config{ID: store, BlockBytes: 1024} }

func logConfig() *wal.Config {
	return &wal.Config{ID: store, SegmentBytes: 64 << 10, Spares: 1, Keep: 2, RetryFor: -1, Logger: slog.New(slog.DiscardHandler)}
}

// thing is a message, a key that is remembered, or a finished message, as it stands.
type thing struct {
	id    engine.ID
	queue uint32
	area  memtable.Area
	key   string
	record.State
	content []byte
	trace   record.Trace
	ended   int64 // of a finished message
	past    record.HistoryEntry
	at      record.Spot // the zero one: among the recent
}

func (x *thing) time() int64 {
	switch {
	case x.area == memtable.Finished:
		return x.trace.Ended + 1000
	case x.area == memtable.Listed:
		return x.ended
	case x.Dead:
		return x.Died
	}
	return x.Due
}

func (x *thing) place() sstable.Place {
	return sstable.Place{Queue: x.queue, At: x.time(), ID: uint64(x.id)}
}

func (x *thing) value() []byte {
	value := record.AppendValue(nil, &x.State, x.content)
	if x.area == memtable.Finished {
		value = x.trace.Append(nil)
	}
	if x.area == memtable.Listed {
		value = x.past.Append(nil)
	}
	return record.AppendKeyed(nil, []byte(x.key), value)
}

func (x *thing) hash(secret sstable.Secret) sstable.Key {
	if x.key == "" {
		return sstable.Key{}
	}
	return secret.Key(x.queue, x.key)
}

// maker makes a store of the packages below, as an engine would that does one thing at a time.
type maker struct {
	t      testing.TB
	d      *disktest.Disk
	rng    *rand.Rand
	log    *wal.Log
	end    wal.Pos
	man    *manifest.Manifest
	next   manifest.State
	tables map[uint64]*sstable.Table
	things map[engine.ID]*thing
	merged int // sstables that are no more
}

func newMaker(t testing.TB, seed uint64) *maker {
	m := &maker{t: t, d: disktest.New(nil), rng: rand.New(rand.NewPCG(seed, 9)), tables: map[uint64]*sstable.Table{}, things: map[engine.ID]*thing{}}
	must(t, vfs.MkdirAll(m.d, logDir))
	must(t, vfs.MkdirAll(m.d, tablesDir))
	m.next = manifest.State{Store: store, Secret: [16]byte{1, 2}, NextID: 1, NextQueue: 5, NextFile: 1}
	var err error
	m.man, err = manifest.Create(m.d, dir, m.next)
	must(t, err)
	m.log, _, err = wal.Open(m.d, logDir, logConfig(), 0, func(wal.Entry) error { return nil })
	must(t, err)
	m.names()
	return m
}

// written is a record.
type written interface{ Append([]byte) []byte }

// do writes a group of records.
func (m *maker) do(records ...written) {
	m.t.Helper()
	var b []byte
	for _, r := range records {
		b = r.Append(b)
	}
	m.entry(record.Group, b)
}

func (m *maker) entry(kind byte, b []byte) {
	m.t.Helper()
	var err error
	m.end, err = m.log.Append(kind, b)
	must(m.t, err)
}

func (m *maker) names() {
	for q := range uint32(4) {
		m.do(&record.Name{Queue: q + 1, Name: fmt.Append(nil, "queue-", q+1)})
	}
}

// spot is what a record says of where a thing stands: that is not always known.
func (m *maker) spot(x *thing) record.Spot {
	if m.rng.IntN(4) == 0 {
		return record.Spot{}
	}
	return x.at
}

// any returns one of those that are wanted.
func (m *maker) any(want func(*thing) bool) *thing {
	ids := slices.Sorted(maps.Keys(m.things))
	ids = slices.DeleteFunc(ids, func(id engine.ID) bool { return !want(m.things[id]) })
	if len(ids) == 0 {
		return nil
	}
	return m.things[ids[m.rng.IntN(len(ids))]]
}

// holder is who has a key in an area.
func (m *maker) holder(queue uint32, key string, area memtable.Area) *thing {
	for _, x := range m.things {
		if x.queue == queue && x.key == key && x.area == area && key != "" {
			return x
		}
	}
	return nil
}

func (m *maker) content() []byte {
	c := record.Content{Created: 5, Policy: engine.Policy{Priority: 1024, MaxAttempts: 20}, Content: engine.Content{Body: make([]byte, m.rng.IntN(400))}}
	return c.Append(nil)
}

// gone takes a thing away.
func (m *maker) gone(x *thing) written {
	g := &record.Gone{ID: engine.ID(memtable.MessageOf(uint64(x.id))), From: m.spot(x), Listed: x.area == memtable.Listed}
	if r := m.tables[x.at.Table]; r != nil {
		r.Kill(x.at.At)
	}
	delete(m.things, x.id)
	return g
}

// becomes gives a message another state.
func (m *maker) becomes(x *thing, s record.State) {
	x.State, x.area = s, memtable.AreaOf(s.Dead)
	if x.at.Table == 0 {
		m.do(&record.Move{ID: x.id, State: s})
		return
	}
	m.do(&record.Put{ID: x.id, Queue: x.queue, From: m.spot(x), Key: []byte(x.key), State: s, Content: x.content})
	m.tables[x.at.Table].Kill(x.at.At)
	x.at = record.Spot{}
}

func (m *maker) push(queue uint32, key string) *thing {
	x := &thing{id: engine.ID(m.next.NextID), queue: queue, key: key, State: record.State{Due: m.rng.Int64N(1000), Expires: record.Never}, content: m.content()}
	m.next.NextID++
	var group []written
	if old := m.holder(queue, key, memtable.Finished); old != nil {
		group = append(group, m.gone(old))
	}
	m.do(append(group, &record.Put{ID: x.id, Queue: queue, New: true, Key: []byte(key), State: x.State, Content: x.content})...)
	m.things[x.id] = x
	return x
}

func (m *maker) step() {
	area := func(a memtable.Area) func(*thing) bool { return func(x *thing) bool { return x.area == a } }
	state := record.State{Due: m.rng.Int64N(1000), Expires: record.Never, Attempt: m.rng.Uint32N(3)}
	switch op := m.rng.IntN(100); {
	case op < 50:
		queue, key := 1+m.rng.Uint32N(4), ""
		if m.rng.IntN(3) > 0 {
			key = fmt.Sprint("key-", m.rng.IntN(200))
		}
		if m.holder(queue, key, memtable.Live) == nil {
			m.push(queue, key)
		}
	case op < 60:
		if x := m.any(area(memtable.Live)); x != nil {
			m.do(&record.Lease{ID: x.id, From: m.spot(x), Deadline: 5, Attempt: 1})
		}
	case op < 68:
		if x := m.any(area(memtable.Live)); x != nil {
			m.becomes(x, state)
		}
	case op < 76:
		if x := m.any(area(memtable.Live)); x != nil {
			state.Dead, state.Died = true, m.rng.Int64N(1000)
			m.becomes(x, state)
		}
	case op < 80:
		if x := m.any(area(memtable.Dead)); x != nil && m.holder(x.queue, x.key, memtable.Live) == nil {
			m.becomes(x, state)
		}
	case op < 94:
		x := m.any(func(x *thing) bool { return x.area.IsMessage() })
		if x == nil {
			break
		}
		group := []written{m.gone(x)}
		if x.key != "" && m.holder(x.queue, x.key, memtable.Finished) == nil && m.rng.IntN(2) == 0 {
			y := &thing{id: x.id, queue: x.queue, area: memtable.Finished, key: x.key, trace: record.Trace{Due: x.Due, Ending: engine.Acked, Ended: m.rng.Int64N(1000)}}
			m.things[y.id] = y
			group = append(group, &record.Finish{ID: y.id, Queue: y.queue, Key: []byte(y.key), Due: x.Due, Ending: engine.Acked, Ended: y.trace.Ended, Forgotten: y.time()})
		}
		if m.rng.IntN(2) == 0 {
			y := &thing{id: engine.ID(memtable.Listed.IDOf(uint64(x.id))), queue: x.queue, area: memtable.Listed, key: x.key, ended: m.rng.Int64N(1000),
				past: record.HistoryEntry{Due: x.Due, Ending: engine.Acked, Attempt: x.Attempt, Worker: "w"}}
			m.things[y.id] = y
			group = append(group, &record.List{ID: x.id, Queue: y.queue, Key: []byte(y.key), Ended: y.ended, Value: y.past.Append(nil)})
		}
		m.do(group...)
	default:
		if x := m.any(func(x *thing) bool { return !x.area.IsMessage() }); x != nil {
			m.do(m.gone(x))
		}
	}
}

// file is the number of the next sstable or deletion bitmaps.
func (m *maker) file() uint64 {
	m.next.NextFile++
	return m.next.NextFile - 1
}

// flush writes what is recent to sstables.
func (m *maker) flush() {
	m.next.Replay = uint64(m.end)
	m.names()
	for area := range memtable.Areas {
		var of []*thing
		for _, x := range m.things {
			if x.at.Table == 0 && x.area == area {
				of = append(of, x)
			}
		}
		m.writeTable(area, of)
	}
	m.install()
}

// writeTable writes an sstable.
func (m *maker) writeTable(area memtable.Area, of []*thing) {
	if len(of) == 0 {
		return
	}
	slices.SortFunc(of, func(a, b *thing) int { return a.place().Compare(b.place()) })
	number := m.file()
	w, err := sstable.Create(m.d, tablesDir, number, tableConfig())
	must(m.t, err)
	for i, x := range of {
		must(m.t, w.Add(x.place(), x.hash(m.next.Secret), x.value()))
		x.at = record.Spot{Table: number, At: uint32(i)}
	}
	r, err := w.Finish()
	must(m.t, err)
	m.take(area, r)
}

// take counts an sstable.
func (m *maker) take(area memtable.Area, r *sstable.Table) {
	m.tables[r.Number()] = r
	m.next.Tables = append(m.next.Tables, manifest.Table{Number: r.Number(), Area: uint8(area), Entries: r.Len(), Alive: r.Len(), Bytes: uint64(r.Bytes())})
}

// merge makes one sstable of all of an area.
func (m *maker) merge(area memtable.Area) {
	var sources []*sstable.Table
	for _, r := range m.next.Tables {
		if r.Area == uint8(area) {
			sources = append(sources, m.tables[r.Number])
		}
	}
	if len(sources) < 2 {
		return
	}
	merged, err := sstable.Merge(m.d, tablesDir, m.file(), tableConfig(), sources)
	must(m.t, err)
	for i, r := range sources {
		for _, x := range m.things {
			if x.at.Table == r.Number() {
				pos, ok := merged.Locate(i, x.at.At)
				if !ok {
					m.t.Fatalf("message %d was lost", x.id)
				}
				x.at = record.Spot{Table: merged.Run.Number(), At: pos}
			}
		}
		m.next.Tables = slices.DeleteFunc(m.next.Tables, func(is manifest.Table) bool { return is.Number == r.Number() })
		delete(m.tables, r.Number())
		m.merged++
	}
	if merged.Run.Len() > 0 {
		m.take(area, merged.Run)
	} else {
		must(m.t, merged.Run.Remove())
	}
	m.install()
	for _, r := range sources {
		must(m.t, r.Remove())
	}
}

// install writes the manifest with new deletion bitmaps, sometimes only some.
func (m *maker) install() {
	m.t.Helper()
	must(m.t, m.log.Wait(m.t.Context(), m.end))
	for i := range m.next.Tables {
		r := &m.next.Tables[i]
		if is := m.tables[r.Number]; is.Count(0, is.Len()) < int(r.Alive) && (m.rng.IntN(4) > 0 || m.next.Replay > m.man.State().Replay) {
			bits, alive := is.AppendBits(nil)
			r.Deleted, r.Alive = bits, uint32(alive)
		}
	}
	m.write()
}

// write writes the manifest.
func (m *maker) write() {
	m.t.Helper()
	slices.SortFunc(m.next.Tables, func(a, b manifest.Table) int { return cmp.Compare(a.Number, b.Number) })
	must(m.t, m.man.Write(m.next))
	m.log.Release(wal.Pos(m.next.Replay))
}

// history does n things, with flushes and merges between them.
func (m *maker) history(n int) {
	for range n {
		m.step()
		switch op := m.rng.IntN(400); {
		case op < 4:
			m.flush()
		case op < 7:
			m.merge(memtable.Area(m.rng.IntN(int(memtable.Areas))))
		}
	}
}

// close closes the store, and returns its disk.
func (m *maker) close() *disktest.Disk {
	m.t.Helper()
	must(m.t, m.log.Close())
	m.closeTables()
	return m.d
}

// kill ends the process, and returns the disk as it is then.
func (m *maker) kill() *disktest.Disk {
	m.t.Helper()
	must(m.t, m.log.Wait(m.t.Context(), m.end))
	d := m.d.Kill()
	m.close()
	return d
}

func (m *maker) closeTables() {
	for _, r := range m.tables {
		must(m.t, r.Close())
	}
}

// queues is what a report should say.
func (m *maker) queues() []Queue {
	all := make([]Queue, 4)
	for i := range all {
		all[i] = Queue{Name: fmt.Sprint("queue-", i+1), Number: uint32(i + 1)}
	}
	for _, x := range m.things {
		q := &all[x.queue-1]
		switch x.area {
		case memtable.Live:
			q.Live++
		case memtable.Dead:
			q.Dead++
		case memtable.Listed:
			q.Listed++
		default:
			q.Finished++
		}
	}
	return all
}

// checked checks a store, which must change nothing.
func checked(t testing.TB, d *disktest.Disk) *Report {
	t.Helper()
	d.Hook(func(c disktest.Call) error {
		if c.Changes() {
			t.Errorf("the check changes something: %+v", c)
		}
		return nil
	})
	rep, err := Check(d, dir, nil)
	d.Hook(nil)
	must(t, err)
	if d.Handles() > 0 {
		t.Fatalf("%d files are open", d.Handles())
	}
	return rep
}

// openRun opens an sstable of a store, with who has died in it.
func openTable(t testing.TB, d *disktest.Disk, is manifest.Table) *sstable.Table {
	t.Helper()
	r, err := sstable.Open(d, tablesDir, is.Number, tableConfig())
	must(t, err)
	must(t, is.Restore(dir, r))
	return r
}
