package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

const page = 4 << 10 // as package disk has it

// made is where a salvage makes a store.
const made = "/made"

func salvageConfig() *Config { return &Config{segment: 64 << 10} }

// salvaged salvages a store, which stays as it is.
func salvaged(t testing.TB, d vfs.FS) Salvaged {
	t.Helper()
	told := 0
	out, err := Salvage(d, dir, made, salvageConfig(), func(*Salvaged) error { told++; return nil })
	must(t, err)
	if !out.After.Sound() || len(out.After.Leftovers) > 0 || told != 1 {
		t.Fatalf("told %d times; %+v", told, out.After)
	}
	return out
}

// all are the contents of all files of a store, by name.
func all(t testing.TB, d *disktest.Disk) map[string]string {
	t.Helper()
	is := map[string]string{}
	for _, name := range listed(t, d) {
		is[name] = string(bytesOf(t, d, name))
	}
	return is
}

// where are the bytes of each message of a store that is sound: of the block of its sstable, or of the
// frames with the entry that says last what it is. It reads the files by themselves.
func where(t testing.TB, m *maker, d *disktest.Disk) map[engine.ID][]span {
	t.Helper()
	le := binary.LittleEndian
	all := map[engine.ID][]span{}
	for _, is := range m.next.Tables {
		name := sstable.Name(tablesDir, is.Number)
		b := bytesOf(t, d, name)
		end := int64(le.Uint64(b[len(b)-176+16+32+8:]))
		var blocks []span
		var counts []uint32
		for off := int64(64); off < end; {
			length := 16 + int64(le.Uint32(b[off+4:]))
			blocks, counts = append(blocks, span{name, off, off + length}), append(counts, le.Uint32(b[off+12:]))
			off += length
		}
		for _, x := range m.things {
			if x.at.Table == is.Number {
				at, i := x.at.At, 0
				for at >= counts[i] {
					at, i = at-counts[i], i+1
				}
				all[x.id] = []span{blocks[i]}
			}
		}
	}
	type piece struct {
		span
		at, end uint64
	}
	var frames []piece
	for _, f := range files(t, d) {
		b := bytesOf(t, d, f.name)
		if !f.log || len(b) < 4096 || string(b[:8]) != "tarrylog" || fmt.Sprintf("%016x.log", le.Uint64(b[16:])) != filepath.Base(f.name) {
			continue
		}
		next := le.Uint64(b[24:])
		for off := int64(4096); off+32 <= int64(len(b)); {
			n, at := int64(le.Uint32(b[off+4:])), le.Uint64(b[off+8:])
			if at != next {
				break
			}
			size := (32 + n + 7) / 8 * 8
			frames = append(frames, piece{span{f.name, off, off + size}, at, at + uint64(n)})
			next, off = at+uint64(n), off+size
		}
	}
	last := map[engine.ID]wal.Entry{}
	blank := newContents(&reader{rep: new(Report), dir: dir})
	_, err := wal.Read(d, logDir, logConfig(), wal.Pos(m.next.Replay), func(e wal.Entry) error {
		return record.Each(e.Kind, e.Bytes, &puts{contents: blank, at: e, last: last})
	})
	must(t, err)
	for _, x := range m.things {
		if x.at.Table != 0 {
			continue
		}
		e := last[x.id]
		for _, f := range frames {
			if f.at < uint64(e.End) && f.end > uint64(e.Start) {
				all[x.id] = append(all[x.id], f.span)
			}
		}
		if len(all[x.id]) == 0 {
			t.Fatalf("message %d is nowhere", x.id)
		}
	}
	return all
}

// puts notes the entries that say what a message is.
type puts struct {
	*contents
	at   wal.Entry
	last map[engine.ID]wal.Entry
}

func (p *puts) Name(*record.Name) error { return nil }
func (p *puts) Put(x *record.Put) error { p.last[x.ID] = p.at; return nil }
func (p *puts) Finish(x *record.Finish) error {
	p.last[x.ID] = p.at
	return nil
}

func (p *puts) List(x *record.List) error {
	p.last[x.ID|1<<63] = p.at
	return nil
}

// holds are the values, with keys, of what lives in a store that was made.
func holds(t testing.TB, d *disktest.Disk) map[engine.ID][]byte {
	t.Helper()
	state, err := manifest.Read(d, made)
	must(t, err)
	all := map[engine.ID][]byte{}
	for _, is := range state.Tables {
		r, err := sstable.Open(d, made+"/runs", is.Number, tableConfig())
		must(t, err)
		must(t, is.Restore(made, r))
		s := r.Scan(0, r.Len())
		for s.Next() {
			all[engine.ID(s.Entry().ID)] = slices.Clone(s.Entry().Value)
		}
		must(t, errors.Join(s.Err(), s.Close(), r.Close()))
	}
	return all
}

// spoils reports whether one of some spans is not what it was.
func spoils(spoilt, of []span) bool {
	return slices.ContainsFunc(of, func(a span) bool {
		return slices.ContainsFunc(spoilt, func(b span) bool { return a.name == b.name && a.from < b.to && b.from < a.to })
	})
}

// keeps says what is missing of a store that was salvaged: of messages none of whose bytes were spoilt.
func keeps(t testing.TB, m *maker, d *disktest.Disk, at map[engine.ID][]span, spoilt []span) string {
	t.Helper()
	has := holds(t, d)
	for _, x := range m.things {
		value, ok := has[x.id]
		if x.area == memtable.Finished || spoils(spoilt, at[x.id]) || x.area == memtable.Listed && ok && bytes.Equal(value, x.value()) {
			continue
		}
		if !ok {
			return fmt.Sprintf("message %d of area %d, which stood in %v, is lost", x.id, x.area, at[x.id])
		}
		key, value, err := record.ParseKeyed(value)
		must(t, err)
		_, content, err := record.ParseValue(value)
		must(t, err)
		if len(key) > 0 && string(key) != x.key || !bytes.Equal(content, x.content) {
			return fmt.Sprintf("message %d is another one", x.id)
		}
	}
	for id := range has {
		if memtable.MessageOf(uint64(id)) >= m.next.NextID {
			return fmt.Sprintf("message %d never was", id)
		}
	}
	return ""
}

// TestSalvages does something to a file of a store, often: what is made of it is sound, has all
// messages whose bytes are what they were, and the store stays as it was.
func TestSalvages(t *testing.T) {
	damaged, lost := 0, 0
	for h := range histories(t) {
		m, sound, rng := h.maker, h.sound, h.rng
		at := where(t, m, sound)
		for k := range disktest.Thorough(20, 50) {
			d := sound.Kill()
			what, to, spoilt := damage(t, d, rng)
			if rng.IntN(4) == 0 && len(to) == 1 {
				more, others, also := damage(t, d, rng)
				what, to, spoilt = what+", and "+more, append(to, others...), append(spoilt, also...)
			}
			names := []string{}
			for _, f := range to {
				names = append(names, f.name)
			}
			hint := fmt.Sprintf("%s, damage %d: %v has %s", h.name, k, names, what)
			was := all(t, d)
			planned := ""
			_, err := Salvage(d, dir, made, salvageConfig(), func(s *Salvaged) error { planned = fmt.Sprint(s.Losses); return errTest })
			if names, _ := d.List("/"); !errors.Is(err, errTest) || slices.Contains(names, "made") {
				t.Fatalf("%s: %v, %v", hint, err, names)
			}
			told := ""
			out, err := Salvage(d, dir, made, salvageConfig(), func(s *Salvaged) error { told = fmt.Sprint(s.Losses); return nil })
			if err != nil || !out.After.Sound() || len(out.After.Leftovers) > 0 || d.Handles() > 0 {
				t.Fatalf("%s: %v, %+v", hint, err, out.After)
			}
			if planned != told {
				t.Fatalf("%s: it was to lose\n%v, and loses\n%v", hint, planned, told)
			}
			if !maps.Equal(all(t, d), was) {
				t.Fatalf("%s: the store is another one", hint)
			}
			if missing := keeps(t, m, d, at, spoilt); missing != "" {
				t.Fatalf("%s: %s\n%v", hint, missing, out.Losses)
			}
			gone := 0
			for id := range at {
				if _, ok := holds(t, d)[id]; !ok {
					gone++
				}
			}
			if gone > 0 {
				lost++
			}
			if !out.Before.Sound() {
				damaged++
			}
			ofLast := slices.ContainsFunc(to, func(f file) bool { return f.last }) // that cannot be told from a crash
			if gone > 0 && len(out.Losses) == 0 && !ofLast {
				t.Fatalf("%s: %d are lost, and nothing is said", hint, gone)
			}
		}
	}
	t.Logf("%d damaged stores, %d of which lost something", damaged, lost)
	if damaged < 30 || lost == 0 {
		t.Errorf("%d damaged stores, %d of which lost something", damaged, lost)
	}
}

// listed are all files of a store that may be damaged.
func listed(t testing.TB, d *disktest.Disk) (all []string) {
	t.Helper()
	for _, in := range []string{dir, tablesDir, logDir} {
		names, err := d.List(in)
		must(t, err)
		for _, name := range names {
			if in != dir || name == manifest.Name {
				all = append(all, filepath.Join(in, name))
			}
		}
	}
	return all
}

// spoilt is a store with something of each kind damaged.
func spoilt(t testing.TB, seed uint64) (*maker, *disktest.Disk) {
	t.Helper()
	m := newMaker(t, seed)
	for range 3 {
		m.history(60)
		m.flush()
	}
	m.history(40)
	d := m.close()
	last := m.next.Tables[len(m.next.Tables)-1]
	d.Flip(sstable.Name(tablesDir, last.Number), 100, 1)
	for _, f := range files(t, d) {
		if f.last {
			d.Flip(f.name, 4096+40, 1)
		}
	}
	if checked(t, d).Sound() {
		t.Fatal("nothing is damaged")
	}
	return m, d
}

// TestSalvagePowerLoss lets the power go before each call of a salvage that changes the disk: the store
// stays as it was, and what is made of it is whole, or cannot be opened.
func TestSalvagePowerLoss(t *testing.T) {
	for name, seed := range map[string]uint64{"manifest": 21, "none": 32} {
		t.Run(name, func(t *testing.T) {
			_, d := spoilt(t, seed)
			if name == "none" {
				d.Flip(filepath.Join(dir, manifest.Name), 40, 1)
			}
			salvagePowerLoss(t, d)
		})
	}
}

func salvagePowerLoss(t *testing.T, d *disktest.Disk) {
	was := all(t, d)
	whole := d.Kill()
	salvaged(t, whole)
	want := holds(t, whole)
	draws := rand.Uint64()
	type loss struct {
		call disktest.Call
		disk *disktest.Disk
	}
	var mu sync.Mutex // the log that is written has goroutines of its own
	var losses []loss
	d.Hook(func(c disktest.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if !c.Changes() {
			return nil
		}
		if draws++; draws%uint64(max(1, 3/disktest.Thorough(1, 3))) != 0 && c.Op != disktest.Remove {
			return nil
		}
		for _, chooser := range []disktest.Chooser{disktest.Seeded(draws), [...]disktest.Chooser{disktest.Nothing(), disktest.Everything()}[draws%2]} {
			losses = append(losses, loss{c, d.Crash(chooser)})
		}
		return nil
	})
	out, err := Salvage(d, dir, made, salvageConfig(), func(*Salvaged) error { return nil })
	d.Hook(nil)
	must(t, err)
	losses = append(losses, loss{disk: d.Crash(disktest.Nothing())})
	counts := 0
	for _, l := range losses {
		if !maps.Equal(all(t, l.disk), was) {
			t.Fatalf("power lost before %+v: the store is another one", l.call)
		}
		names, err := l.disk.List(made)
		if err != nil || len(names) == 0 || slices.Contains(names, manifest.Restoring) {
			continue // nothing was begun, or it cannot be opened
		}
		counts++
		rep, err := Check(l.disk, made, nil)
		if err != nil || !rep.Sound() || fmt.Sprint(rep.Queues) != fmt.Sprint(out.After.Queues) || !same(holds(t, l.disk), want) {
			t.Fatalf("power lost before %+v: %v, %+v, was %+v", l.call, err, rep, out.After)
		}
	}
	if len(losses) < 30 || counts == 0 || counts == len(losses) {
		t.Errorf("%d losses, after which it counted %d times", len(losses), counts)
	}
}

func same(a, b map[engine.ID][]byte) bool {
	for id, v := range a {
		if !bytes.Equal(b[id], v) {
			return false
		}
	}
	return len(a) == len(b)
}

// TestSalvageFaults lets each call of a salvage that changes the disk fail in turn: it says so, and the
// store stays as it was.
func TestSalvageFaults(t *testing.T) {
	_, sound := spoilt(t, 22)
	was, failed := all(t, sound), 0
	for at := 1; ; at += max(1, 4/disktest.Thorough(1, 4)) {
		d, n := sound.Kill(), 0
		var mu sync.Mutex
		d.Hook(func(c disktest.Call) error {
			mu.Lock()
			defer mu.Unlock()
			if !c.Changes() {
				return nil
			}
			if n++; n == at {
				return &disktest.Short{Err: syscall.ENOSPC}
			}
			return nil
		})
		_, err := Salvage(d, dir, made, salvageConfig(), func(*Salvaged) error { return nil })
		d.Hook(nil)
		if d.Handles() > 0 || !maps.Equal(all(t, d), was) {
			t.Fatalf("call %d: %d files are open, or the store is another one", at, d.Handles())
		}
		if err != nil {
			failed++
		}
		if n < at {
			must(t, err)
			break
		}
	}
	if failed < 10 {
		t.Errorf("%d calls failed", failed)
	}
}

// TestSalvageRefused: nothing is written where who is told does not want it, nor to a directory that holds
// something.
func TestSalvageRefused(t *testing.T) {
	_, d := spoilt(t, 23)
	d.Hook(func(c disktest.Call) error {
		if c.Changes() {
			t.Errorf("it changes something: %+v", c)
		}
		return nil
	})
	_, err := Salvage(d, dir, made, salvageConfig(), func(s *Salvaged) error {
		if len(s.Losses) < 2 || s.Before.Sound() {
			t.Errorf("%+v", s)
		}
		return errTest
	})
	if !errors.Is(err, errTest) {
		t.Error(err)
	}
	if _, err := Salvage(d, dir, tablesDir, salvageConfig(), func(*Salvaged) error { return nil }); !errors.Is(err, manifest.ErrTaken) {
		t.Error(err)
	}
}

// TestLostTables: the loss of a whole sstable says what kind of entries it had, and how many.
func TestLostTables(t *testing.T) {
	m := newMaker(t, 29)
	for range 4 {
		m.history(60)
		m.flush()
	}
	d := m.close()
	areas := map[memtable.Area]int{}
	for _, is := range m.next.Tables {
		name := sstable.Name(tablesDir, is.Number)
		must(t, d.Remove(name))
		areas[memtable.Area(is.Area)]++
	}
	for _, l := range salvaged(t, d).Losses {
		number, _ := sstable.ParseName(l.File)
		is, ok := m.next.Table(number)
		area := memtable.Area(is.Area)
		if !ok || l.Messages != int64(is.Alive) || l.Keys != (area == memtable.Finished) || l.Listed != (area == memtable.Listed) {
			t.Errorf("of area %d, with %d alive: %+v", area, is.Alive, l)
		}
		areas[area]--
	}
	for area := range memtable.Areas {
		if n, ok := areas[area]; n != 0 || !ok {
			t.Errorf("of area %d, %d losses are missing", area, n)
		}
	}
}

// TestSalvageLinks: of sound sstables not a byte is copied, and damaged ones are written anew.
func TestSalvageLinks(t *testing.T) {
	m, d := spoilt(t, 27)
	salvaged(t, d)
	state, err := manifest.Read(d, made)
	must(t, err)
	last := m.next.Tables[len(m.next.Tables)-1].Number
	linked := 0
	for _, is := range state.Tables {
		if was, ok := m.next.Table(is.Number); ok && was.Number != last {
			linked++
			name := sstable.Name(tablesDir, is.Number)
			d.Flip(name, 70, 1)
			if got := bytesOf(t, d, sstable.Name(made+"/runs", is.Number)); !bytes.Equal(got, bytesOf(t, d, name)) {
				t.Errorf("%s is copied", name)
			}
			d.Flip(name, 70, 1)
		}
	}
	if linked == 0 {
		t.Errorf("none is linked: %+v", state.Tables)
	}
}

// TestSectors has a disk that cannot read some sectors: the check names them, and what stands around
// them is salvaged.
func TestSectors(t *testing.T) {
	m := newMaker(t, 24)
	for range 2 {
		m.history(200)
		m.flush()
	}
	m.history(200)
	sound := m.close()
	at := where(t, m, sound)
	for i, name := range listed(t, sound) {
		d := sound.Kill()
		size := int64(len(bytesOf(t, d, name)))
		bad := size / 2 / page * page
		if strings.HasPrefix(name, logDir) {
			bad = page * int64(i%2)
		}
		b := &worn{d, name, bad}
		rep, err := Check(b, dir, nil)
		must(t, err)
		if !rep.Sound() && !slices.ContainsFunc(rep.Findings, func(f Finding) bool { return f.File == name && strings.Contains(f.What, "cannot") || f.File == logDir }) {
			t.Errorf("%s: %v", name, rep.Findings)
		}
		salvaged(t, b)
		if missing := keeps(t, m, d, at, []span{{name, bad, bad + page}}); missing != "" {
			t.Errorf("%s: %s", name, missing)
		}
	}
}

// TestSectorsOfTheManifest has a disk that cannot read a sector of the manifest, each in turn: the check names it, and
// a salvage brings back at most what was deleted of one sstable, which it names.
func TestSectorsOfTheManifest(t *testing.T) {
	m := newMaker(t, 31)
	for range 3 {
		m.history(100)
		m.flush()
	}
	for range 40 {
		m.do(m.gone(m.any(func(x *thing) bool { return x.at.Table != 0 })))
	}
	m.push(1, "at hand")
	m.flush() // from here on the log has none of these
	sound := m.close()
	name := filepath.Join(dir, manifest.Name)
	deleted, withBitmap, brought := 0, 0, 0
	for _, is := range m.next.Tables {
		deleted += int(is.Entries - is.Alive)
		withBitmap += min(1, len(is.Deleted))
	}
	for bad := int64(0); bad < int64(len(bytesOf(t, sound, name))); bad += page {
		d := sound.Kill()
		b := &worn{d, name, bad}
		rep, err := Check(b, dir, nil)
		must(t, err)
		if len(rep.Findings) != 1 || rep.Findings[0].File != name || !strings.Contains(rep.Findings[0].What, "cannot") {
			t.Errorf("offset %d: %v", bad, rep.Findings)
		}
		out, has := salvaged(t, b), holds(t, d)
		for id := range m.things {
			if _, ok := has[id]; !ok {
				t.Errorf("offset %d: message %d is lost", bad, id)
			}
			delete(has, id)
		}
		if len(out.Losses) == 0 && len(has) == 0 {
			continue
		}
		brought++
		if l := out.Losses; len(l) != 1 || len(has) == 0 || l[0].File != name || !l[0].Again || !containsAll(t, sound, m, l[0].What, has) {
			t.Errorf("offset %d: %d are back, lost is %v", bad, len(has), l)
		}
	}
	if deleted < 40 || brought != withBitmap {
		t.Errorf("%d were deleted, and %d of %d sstables lost their deletion bitmap", deleted, brought, withBitmap)
	}
}

// containsAll reports whether all of some messages are in the sstable that a loss names, deleted or not.
func containsAll(t *testing.T, d *disktest.Disk, m *maker, loss string, ids map[engine.ID][]byte) bool {
	t.Helper()
	i := slices.IndexFunc(m.next.Tables, func(is manifest.Table) bool { return strings.Contains(loss, fmt.Sprintf("sstable %d ", is.Number)) })
	if i < 0 {
		return false
	}
	r, err := sstable.Open(d, tablesDir, m.next.Tables[i].Number, tableConfig())
	must(t, err)
	all := true
	for id := range ids {
		_, ok, err := r.FindID(uint64(id))
		must(t, err)
		all = all && ok
	}
	must(t, r.Close())
	return all
}

// worn is a disk with a sector that cannot be read.
type worn struct {
	vfs.FS
	name string
	off  int64
}

func (b *worn) Open(name string) (vfs.File, error) {
	f, err := b.FS.Open(name)
	if err != nil || name != b.name {
		return f, err
	}
	return &wornFile{f, b.off}, nil
}

type wornFile struct {
	vfs.File
	off int64
}

func (f *wornFile) ReadAt(b []byte, off int64) (int, error) {
	if off < f.off+page && f.off < off+int64(len(b)) {
		return 0, fmt.Errorf("read: %w", syscall.EIO)
	}
	return f.File.ReadAt(b, off)
}

// TestSalvageSkipsIDs: where something of the log is missing, no id is given again of which only others know.
func TestSalvageSkipsIDs(t *testing.T) {
	m := newMaker(t, 26)
	must(t, m.log.Wait(t.Context(), m.end))
	sound := m.end
	m.history(50)
	d := m.close()
	name := logDir + "/0000000000000001.log"
	for b, at := bytesOf(t, d, name), int64(4096); ; {
		n := int64(binary.LittleEndian.Uint32(b[at+4:]))
		if n == 0 {
			break // it says that the log was closed
		}
		if binary.LittleEndian.Uint64(b[at+8:]) >= uint64(sound) {
			d.Flip(name, at+32, 1)
		}
		at += (32 + n + 7) / 8 * 8
	}
	salvaged(t, d)
	state, err := manifest.Read(d, made)
	must(t, err)
	if state.NextID < m.next.NextID {
		t.Errorf("the next id is %d; %d was given", state.NextID, m.next.NextID-1)
	}
}

// TestSalvageOfALogAlone: a store that has lost its manifest, and has no sstable, is known by its log.
func TestSalvageOfALogAlone(t *testing.T) {
	m := newMaker(t, 28)
	for i := range 20 {
		m.push(1+uint32(i%4), fmt.Sprint(i))
	}
	d := m.close()
	must(t, d.Remove(filepath.Join(dir, manifest.Name)))
	out := salvaged(t, d)
	if has := holds(t, d); len(has) != 20 || len(out.Losses) != 1 || fmt.Sprint(out.After.Queues) != fmt.Sprint(m.queues()) {
		t.Errorf("%d live; %+v", len(has), out)
	}
}

// TestSalvageOfASoundStore keeps all there is, and loses nothing.
func TestSalvageOfASoundStore(t *testing.T) {
	m := newMaker(t, 29)
	for range 2 {
		m.history(100)
		m.flush()
	}
	m.history(50)
	d := m.close()
	out := salvaged(t, d)
	if len(out.Losses)+len(out.Notes) > 0 || fmt.Sprint(out.After.Queues) != fmt.Sprint(m.queues()) {
		t.Errorf("%+v, want %v", out, m.queues())
	}
}
