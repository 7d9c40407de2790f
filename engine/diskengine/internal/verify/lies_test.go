package verify

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// lie makes an sstable of what is not so.
func (m *maker) lie(area memtable.Area, change func(x *thing) (sstable.Place, sstable.Key, []byte)) {
	m.t.Helper()
	x := m.any(func(x *thing) bool { return x.at.Table == 0 && x.area == area })
	if x == nil {
		m.t.Fatal("there is none")
	}
	w, err := sstable.Create(m.d, tablesDir, m.file(), tableConfig())
	must(m.t, err)
	p, k, v := change(x)
	must(m.t, w.Add(p, k, v))
	r, err := w.Finish()
	must(m.t, err)
	m.take(area, r)
	m.do(m.gone(x)) // of the log
	m.write()
}

// plain is what an sstable should have of a thing.
func (m *maker) plain(x *thing) (sstable.Place, sstable.Key, []byte) {
	return x.place(), x.hash(m.next.Secret), x.value()
}

// stood is a live message with a key, in an sstable.
func (m *maker) stood() *thing {
	return m.any(func(x *thing) bool { return x.at.Table != 0 && x.area == memtable.Live && x.key != "" })
}

// id is one that was given.
func (m *maker) id() engine.ID {
	m.next.NextID++
	return engine.ID(m.next.NextID - 1)
}

// unknown is one that was not.
func (m *maker) unknown() engine.ID { return engine.ID(m.next.NextID) + 5 }

func (m *maker) secret() *sstable.Secret { s := sstable.Secret(m.next.Secret); return &s }

// writeDeletions writes the manifest with the deletion bitmaps as they are now.
func (m *maker) writeDeletions() {
	for slices.ContainsFunc(m.next.Tables, func(r manifest.Table) bool { return m.tables[r.Number].Count(0, r.Entries) < int(r.Alive) }) {
		m.install()
	}
}

// TestLies writes what no engine should, with checksums that match: each is a finding.
func TestLies(t *testing.T) {
	for name, c := range map[string]struct {
		what string
		tell func(m *maker)
	}{
		"nothing": {"", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				p, k, v := m.plain(x)
				p.ID = uint64(m.next.NextID)
				m.next.NextID++
				return p, k, v
			})
		}},
		"a message in two sstables": {"and also in sstable", func(m *maker) {
			x := m.stood()
			m.writeTable(memtable.Live, []*thing{{id: x.id, queue: x.queue, State: x.State, content: x.content, key: "another"}})
			m.write()
		}},
		"a message in an sstable and in the log": {"the log tells of it too", func(m *maker) {
			x := m.stood()
			m.do(&record.Finish{ID: x.id, Queue: x.queue, Key: []byte("another"), Ending: engine.Acked})
		}},
		"a key in two sstables": {"has the key of one in sstable", func(m *maker) {
			x := m.stood()
			m.writeTable(memtable.Live, []*thing{{id: m.id(), queue: x.queue, key: x.key, State: x.State, content: x.content}})
			m.write()
		}},
		"a key in an sstable and in the log": {"has the key of message", func(m *maker) {
			x := m.stood()
			m.push(x.queue, x.key)
		}},
		"a key twice in the log": {"have one key", func(m *maker) {
			m.push(1, "twice")
			m.push(1, "twice")
		}},
		"a key remembered twice": {"have one key", func(m *maker) {
			for range 2 {
				x := m.push(1, "f")
				m.do(m.gone(x), &record.Finish{ID: x.id, Queue: 1, Key: []byte("f"), Ending: engine.Acked})
			}
		}},
		"a queue without a name": {"queue 3 holds something", func(m *maker) {
			m.push(3, "")
			m.do(&record.Name{Queue: 3})
		}},
		"a name twice": {"have one name", func(m *maker) { m.do(&record.Name{Queue: 4, Name: []byte("queue-1")}) }},
		"an id of an sstable that was never given": {"was not given", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				p, k, v := m.plain(x)
				p.ID = uint64(m.next.NextID)
				return p, k, v
			})
		}},
		"an id of the log that was never given": {"was not given", func(m *maker) {
			m.do(&record.Put{ID: m.unknown(), Queue: 1, State: record.State{Expires: record.Never}, Content: m.content()})
		}},
		"a remembered id that was never given": {"was not given", func(m *maker) {
			m.do(&record.Finish{ID: m.unknown(), Queue: 1, Key: []byte("f"), Ending: engine.Acked})
		}},
		"a push twice": {"is pushed twice", func(m *maker) {
			id := m.id()
			for range 2 {
				m.do(&record.Put{ID: id, New: true, Queue: 1, State: record.State{Expires: record.Never}, Content: m.content()})
			}
		}},
		"a queue of an sstable that there never was": {"there was no queue 9", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				p, k, v := m.plain(x)
				p.Queue = 9
				return p, k, v
			})
		}},
		"a live message among the dead": {"whether it is dead is false", func(m *maker) {
			m.push(1, "")
			x := m.any(func(x *thing) bool { return x.at.Table == 0 && x.area == memtable.Live })
			m.writeTable(memtable.Dead, []*thing{x})
			m.write()
		}},
		"a message at another time": {"stands at time", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				p, k, v := m.plain(x)
				p.At++
				return p, k, v
			})
		}},
		"a key that is not in the index": {"keys that lead to other entries", func(m *maker) {
			m.push(1, "a")
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				x.key = "a"
				p, _, v := m.plain(x)
				return p, sstable.Key{}, v
			})
		}},
		"a key that is another": {"keys that lead to other entries", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				x.key = "a"
				p, _, v := m.plain(x)
				return p, m.secret().Key(x.queue, "b"), v
			})
		}},
		"a key of another queue": {"keys that lead to other entries", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				x.key = "a"
				p, _, v := m.plain(x)
				return p, m.secret().Key(x.queue+1, "a"), v
			})
		}},
		"a value that cannot be read": {"malformed", func(m *maker) {
			m.lie(memtable.Live, func(x *thing) (sstable.Place, sstable.Key, []byte) {
				p, k, v := m.plain(x)
				return p, k, v[:2]
			})
		}},
		"a trace that cannot be read": {"malformed", func(m *maker) {
			m.push(1, "")
			x := m.any(func(x *thing) bool { return x.at.Table == 0 && x.area == memtable.Live })
			m.writeTable(memtable.Finished, []*thing{x})
			m.write()
		}},
		"no key that is remembered": {"no key is remembered", func(m *maker) {
			m.writeTable(memtable.Finished, []*thing{{id: m.id(), queue: 1, area: memtable.Finished, trace: record.Trace{Ending: engine.Acked}}})
			m.write()
		}},
		"a finished message that cannot be read": {"malformed", func(m *maker) {
			id := engine.ID(memtable.Listed.IDOf(uint64(m.id())))
			m.writeTable(memtable.Listed, []*thing{{id: id, queue: 1, area: memtable.Listed}})
			m.write()
		}},
		"a finished message with the id of a message": {"an entry of another area", func(m *maker) {
			m.writeTable(memtable.Listed, []*thing{{id: m.id(), queue: 1, area: memtable.Listed, past: record.HistoryEntry{Ending: engine.Acked}}})
			m.write()
		}},
		"a stored content that cannot be read": {"malformed", func(m *maker) {
			m.writeTable(memtable.Live, []*thing{{id: m.id(), queue: 1, State: record.State{Expires: record.Never}, content: []byte{9}}})
			m.write()
		}},
		"an area that there is not":    {"of area 4", func(m *maker) { m.next.Tables[0].Area = 4; m.write() }},
		"an sstable of another length": {"bytes", func(m *maker) { m.next.Tables[0].Bytes++; m.write() }},
		"an sstable of other entries": {"entries", func(m *maker) {
			m.next.Tables[0].Entries++
			m.next.Tables[0].Alive++
			m.write()
		}},
		"another number alive": {"are alive in sstable", func(m *maker) {
			x := m.any(func(x *thing) bool { return x.at.Table != 0 })
			m.do(m.gone(x))
			m.writeDeletions()
			for i := range m.next.Tables {
				if r := &m.next.Tables[i]; len(r.Deleted) > 0 {
					r.Alive--
				}
			}
			m.write()
		}},
		"a deletion bitmap that is none": {"is malformed", func(m *maker) {
			m.next.Tables[0].Deleted = []byte{1, 0, 0, 0, 0}
			m.write()
		}},
		"a record that cannot be read": {"byte 0 of an entry of the log", func(m *maker) { m.entry(record.Group, []byte{7, 0}) }},
		"a content that cannot be read": {"malformed", func(m *maker) {
			m.do(&record.Put{ID: m.id(), New: true, Queue: 1, State: record.State{Expires: record.Never}, Content: []byte{9}})
		}},
		"another message at a place": {"where", func(m *maker) {
			x := m.stood()
			m.do(&record.Gone{ID: x.id + 1, From: x.at})
		}},
		"a lease of another message": {"where", func(m *maker) {
			x := m.stood()
			m.do(&record.Lease{ID: x.id + 1, From: x.at, Attempt: 1})
		}},
		"a place that there is not": {"is said to stand at 5000000", func(m *maker) {
			x := m.stood()
			m.do(&record.Gone{ID: x.id, From: record.Spot{Table: x.at.Table, At: 5_000_000}})
		}},
		"a move of what stands in an sstable": {"the log does not tell its content", func(m *maker) { m.do(&record.Move{ID: m.stood().id, State: record.State{Expires: record.Never}}) }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaker(t, 6)
			m.history(150)
			m.flush()
			m.history(30)
			m.push(1, "at hand")
			c.tell(m)
			rep := checked(t, m.close())
			if c.what == "" {
				if !rep.Sound() {
					t.Error(rep.Findings)
				}
				return
			}
			for _, f := range rep.Findings {
				if strings.Contains(f.String(), c.what) && !strings.Contains(f.String(), "\n") {
					return
				}
			}
			t.Errorf("%v", rep.Findings)
		})
	}
}

// TestNewer: what a newer release wrote is no finding, but an error.
func TestNewer(t *testing.T) {
	for _, kind := range []byte{record.Group, record.Group + 1} {
		m := newMaker(t, 7)
		m.entry(kind, []byte{200})
		if rep, err := Check(m.close(), dir, nil); !errors.Is(err, vfs.ErrVersion) || rep != nil {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

// TestManyFindings: a report does not grow without end.
func TestManyFindings(t *testing.T) {
	m := newMaker(t, 9)
	for range MaxFindings + 50 {
		m.entry(record.Group, []byte{7, 0})
	}
	rep := checked(t, m.close())
	if len(rep.Findings) != MaxFindings || rep.More != 50 || rep.Queues != nil {
		t.Errorf("%d findings and %d more", len(rep.Findings), rep.More)
	}
}

// TestMissing: each file that is needed is named when it is missing.
func TestMissing(t *testing.T) {
	m := newMaker(t, 10)
	m.history(200)
	m.flush()
	m.history(100)
	m.flush()
	sound := m.close()
	for _, f := range files(t, sound) {
		if f.log {
			continue
		}
		d := sound.Kill()
		must(t, d.Remove(f.name))
		if rep := checked(t, d); rep.Sound() || rep.Findings[0] != (Finding{File: f.name, Offset: -1, What: "it is missing"}) {
			t.Errorf("without %s: %v", f.name, rep.Findings)
		}
	}
	for _, in := range []string{logDir, tablesDir} {
		d := sound.Kill()
		names, err := d.List(in)
		must(t, err)
		for _, name := range names {
			must(t, d.Remove(in+"/"+name))
		}
		must(t, d.Remove(in))
		if rep := checked(t, d); rep.Sound() || rep.Findings[0].File != in {
			t.Errorf("without %s: %v", in, rep.Findings)
		}
	}
}

// TestOS checks a store on the disk of this machine.
func TestOS(t *testing.T) {
	if _, err := Check(vfs.OS{}, t.TempDir(), nil); err == nil {
		t.Error("an empty directory is a store")
	}
	dir := t.TempDir()
	must(t, vfs.OS{}.Mkdir(dir+"/"+manifest.LogName))
	_, err := manifest.Create(vfs.OS{}, dir, manifest.State{NextID: 1, NextQueue: 1, NextFile: 1})
	must(t, err)
	if rep, err := Check(vfs.OS{}, dir, nil); err != nil || !rep.Sound() {
		t.Errorf("%+v, %v", rep, err)
	}
}
