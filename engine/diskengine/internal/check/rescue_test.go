package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

const page = 4 << 10 // as package disk has it

func rescueConfig() *Config { return &Config{segment: 64 << 10} }

// rescued rescues a store.
func rescued(t testing.TB, d disk.FS) Rescued {
	t.Helper()
	told := false
	out, err := Rescue(d, dir, rescueConfig(), func([]Loss) error { told = true; return nil })
	must(t, err)
	if !out.After.Sound() || told != (out.Aside != "") {
		t.Fatalf("told: %v; %+v", told, out.After)
	}
	return out
}

// where are the bytes of each message of a store that is sound: of the block of its run, or of the
// frames with the entry that says last what it is. It reads the files by themselves.
func where(t testing.TB, m *maker, d *disktest.Disk) map[engine.ID][]span {
	t.Helper()
	le := binary.LittleEndian
	all := map[engine.ID][]span{}
	for _, is := range m.next.Runs {
		name := run.Name(runsDir, is.Number)
		b := contents(t, d, name)
		end := int64(le.Uint64(b[len(b)-176+16+32+8:]))
		var blocks []span
		var counts []uint32
		for off := int64(64); off < end; {
			length := 16 + int64(le.Uint32(b[off+4:]))
			blocks, counts = append(blocks, span{name, off, off + length}), append(counts, le.Uint32(b[off+12:]))
			off += length
		}
		for _, x := range m.things {
			if x.at.Run == is.Number {
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
		b := contents(t, d, f.name)
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
	_, err := wal.Read(d, logDir, logConfig(), wal.Pos(m.next.Replay), func(e wal.Entry) error {
		return record.Each(e.Kind, e.Bytes, &puts{at: e, last: last})
	})
	must(t, err)
	for _, x := range m.things {
		if x.at.Run != 0 {
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
	nameReader
	at   wal.Entry
	last map[engine.ID]wal.Entry
}

func (p *puts) Name(*record.Name) error { return nil }
func (p *puts) Put(x *record.Put) error { p.last[x.ID] = p.at; return nil }
func (p *puts) Finish(x *record.Finish) error {
	p.last[x.ID] = p.at
	return nil
}

// holds are the values, with keys, of what lives in a store that was rescued.
func holds(t testing.TB, d *disktest.Disk) map[engine.ID][]byte {
	t.Helper()
	state, err := manifest.Read(d, dir)
	must(t, err)
	all := map[engine.ID][]byte{}
	for _, is := range state.Runs {
		r := openRun(t, d, is)
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

// keeps says what is missing of a store after a rescue: of messages none of whose bytes were spoilt.
func keeps(t testing.TB, m *maker, d *disktest.Disk, at map[engine.ID][]span, spoilt []span) string {
	t.Helper()
	has := holds(t, d)
	for _, x := range m.things {
		value, ok := has[x.id]
		if x.area == recent.Finished || spoils(spoilt, at[x.id]) {
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
		if uint64(id) >= m.next.NextID {
			return fmt.Sprintf("message %d never was", id)
		}
	}
	return ""
}

// TestRescues does something to a file of a store, often: what is made of it is sound, has all
// messages whose bytes are what they were, and the files are kept as they were.
func TestRescues(t *testing.T) {
	rescues, lost := 0, 0
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
			damaged := d.Kill()
			planned, err := Losses(d, dir, rescueConfig())
			must(t, err)
			told := []Loss(nil)
			out, err := Rescue(d, dir, rescueConfig(), func(l []Loss) error { told = l; return nil })
			if err != nil || !out.After.Sound() || d.Handles() > 0 {
				t.Fatalf("%s: %v, %+v", hint, err, out.After)
			}
			if out.Aside == "" {
				continue
			}
			rescues++
			if fmt.Sprint(planned) != fmt.Sprint(told) {
				t.Fatalf("%s: it was to lose\n%v, and loses\n%v", hint, planned, told)
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
			ofLast := slices.ContainsFunc(to, func(f file) bool { return f.last }) // that cannot be told from a crash
			if gone > 0 && len(out.Losses) == 0 && !ofLast {
				t.Fatalf("%s: %d are lost, and nothing is said", hint, gone)
			}
			for _, f := range listed(t, damaged) {
				if !bytes.Equal(contents(t, damaged, f), contents(t, d, out.Aside+strings.TrimPrefix(f, dir))) {
					t.Fatalf("%s: %s is not kept", hint, f)
				}
			}
			if again := rescued(t, d); again.Aside != "" || len(again.After.Leftovers) > 0 {
				t.Fatalf("%s: rescued once more: %+v", hint, again)
			}
		}
	}
	t.Logf("%d rescues, %d of which lost something", rescues, lost)
	if rescues < 30 || lost == 0 {
		t.Errorf("%d rescues, %d of which lost something", rescues, lost)
	}
}

// listed are all files of a store that may be damaged.
func listed(t testing.TB, d *disktest.Disk) (all []string) {
	t.Helper()
	for _, in := range []string{dir, runsDir, logDir} {
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
	last := m.next.Runs[len(m.next.Runs)-1]
	d.Flip(run.Name(runsDir, last.Number), 100, 1)
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

// TestRescuePowerLoss lets the power go before each call of a rescue that changes the disk: the store
// is what it was, or what it is to be; and another rescue ends in the same.
func TestRescuePowerLoss(t *testing.T) {
	for name, seed := range map[string]uint64{"manifest": 21, "none": 32} {
		t.Run(name, func(t *testing.T) {
			_, d := spoilt(t, seed)
			if name == "none" {
				d.Flip(filepath.Join(dir, manifest.Name), 40, 1)
			}
			rescuePowerLoss(t, d)
		})
	}
}

func rescuePowerLoss(t *testing.T, d *disktest.Disk) {
	before := fmt.Sprint(checked(t, d).Findings)
	whole := d.Kill()
	rescued(t, whole)
	want, queues := holds(t, whole), fmt.Sprint(checked(t, whole).Queues)
	draws, old := rand.Uint64(), 0
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
		if draws++; draws%uint64(max(1, 3/disktest.Thorough(1, 3))) != 0 && c.Op != disktest.Rename {
			return nil
		}
		for _, chooser := range []disktest.Chooser{disktest.Seeded(draws), [...]disktest.Chooser{disktest.Nothing(), disktest.Everything()}[draws%2]} {
			losses = append(losses, loss{c, d.Crash(chooser)})
		}
		return nil
	})
	_, err := Rescue(d, dir, rescueConfig(), func([]Loss) error { return nil })
	d.Hook(nil)
	must(t, err)
	for _, l := range losses {
		rep := checked(t, l.disk)
		if !rep.Sound() {
			if old++; fmt.Sprint(rep.Findings) != before {
				t.Fatalf("power lost before %+v: %v, was %s", l.call, rep.Findings, before)
			}
			rescued(t, l.disk)
		}
		if got := holds(t, l.disk); !same(got, want) {
			t.Fatalf("power lost before %+v: %d live, want %d", l.call, len(got), len(want))
		}
		if got := fmt.Sprint(checked(t, l.disk).Queues); got != queues {
			t.Fatalf("power lost before %+v: queues %s, want %s", l.call, got, queues)
		}
	}
	if len(losses) < 30 || old == 0 || old == len(losses) {
		t.Errorf("%d losses, which left the store as it was %d times", len(losses), old)
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

// TestRescueFaults lets each call of a rescue that changes the disk fail in turn: it says so, and
// another one mends.
func TestRescueFaults(t *testing.T) {
	_, sound := spoilt(t, 22)
	whole := sound.Kill()
	rescued(t, whole)
	want := holds(t, whole)
	failed := 0
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
		_, err := Rescue(d, dir, rescueConfig(), func([]Loss) error { return nil })
		d.Hook(nil)
		if d.Handles() > 0 {
			t.Fatalf("call %d: %d files are open", at, d.Handles())
		}
		if err != nil {
			failed++
		}
		rescued(t, d)
		if !same(holds(t, d), want) {
			t.Fatalf("call %d: others live", at)
		}
		if n < at {
			break
		}
	}
	if failed < 10 {
		t.Errorf("%d calls failed", failed)
	}
}

// TestRescueRefused: who does not want to lose what is named has the store as it was.
func TestRescueRefused(t *testing.T) {
	_, d := spoilt(t, 23)
	d.Hook(func(c disktest.Call) error {
		if c.Changes() {
			t.Errorf("it changes something: %+v", c)
		}
		return nil
	})
	_, err := Rescue(d, dir, rescueConfig(), func(l []Loss) error {
		if len(l) < 2 {
			t.Errorf("%v", l)
		}
		return errTest
	})
	if !errors.Is(err, errTest) {
		t.Error(err)
	}
}

// TestSectors has a disk that cannot read some sectors: the check names them, and what stands around
// them is rescued.
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
		size := int64(len(contents(t, d, name)))
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
		if rep.Sound() {
			continue // nobody reads it
		}
		rescued(t, b)
		if missing := keeps(t, m, d, at, []span{{name, bad, bad + page}}); missing != "" {
			t.Errorf("%s: %s", name, missing)
		}
	}
}

// worn is a disk with a sector that cannot be read.
type worn struct {
	disk.FS
	name string
	off  int64
}

// Rename puts another file in its place.
func (b *worn) Rename(from, to string) error {
	if to == b.name {
		b.name = ""
	}
	return b.FS.Rename(from, to)
}

func (b *worn) Open(name string) (disk.File, error) {
	f, err := b.FS.Open(name)
	if err != nil || name != b.name {
		return f, err
	}
	return &wornFile{f, b.off}, nil
}

type wornFile struct {
	disk.File
	off int64
}

func (f *wornFile) ReadAt(b []byte, off int64) (int, error) {
	if off < f.off+page && f.off < off+int64(len(b)) {
		return 0, fmt.Errorf("read: %w", syscall.EIO)
	}
	return f.File.ReadAt(b, off)
}

// TestRescueSkipsIDs: where something of the log is missing, no id is given again of which only others know.
func TestRescueSkipsIDs(t *testing.T) {
	m := newMaker(t, 26)
	must(t, m.log.Wait(t.Context(), m.end))
	sound := m.end
	m.history(50)
	d := m.close()
	name := logDir + "/0000000000000001.log"
	for b, at := contents(t, d, name), int64(4096); ; {
		n := int64(binary.LittleEndian.Uint32(b[at+4:]))
		if n == 0 {
			break // it says that the log was closed
		}
		if binary.LittleEndian.Uint64(b[at+8:]) >= uint64(sound) {
			d.Flip(name, at+32, 1)
		}
		at += (32 + n + 7) / 8 * 8
	}
	rescued(t, d)
	state, err := manifest.Read(d, dir)
	must(t, err)
	if state.NextID < m.next.NextID {
		t.Errorf("the next id is %d; %d was given", state.NextID, m.next.NextID-1)
	}
}

// TestRescuePurge loses the record of whom a purge spared: nobody is taken by it, and that is said.
func TestRescuePurge(t *testing.T) {
	m := newMaker(t, 25)
	synced := func() { must(t, m.log.Wait(t.Context(), m.end)) }
	synced()
	x, y := m.push(1, "spared"), m.push(1, "purged")
	synced()
	spared := m.end
	m.do(&record.Spare{Queue: 1, First: true, IDs: []engine.ID{x.id}})
	synced()
	m.do(&record.Purge{Queue: 1, UpTo: y.id, At: record.Never - 1, Spares: true})
	d := m.close()
	name := logDir + "/0000000000000001.log"
	b, at := contents(t, d, name), int64(4096)
	for binary.LittleEndian.Uint64(b[at+8:]) != uint64(spared) {
		at += (32 + int64(binary.LittleEndian.Uint32(b[at+4:])) + 7) / 8 * 8
	}
	d.Flip(name, at+33, 1)
	d.Flip(name, 4096+33, 1) // the names too
	out := rescued(t, d)
	if has := holds(t, d); has[x.id] == nil || has[y.id] == nil || !slices.ContainsFunc(out.Notes, func(n string) bool { return strings.HasPrefix(n, "1 purges were not done again") }) {
		t.Errorf("%d live; %v", len(has), out.Notes)
	}
	if q := out.After.Queues; len(q) == 0 || !slices.ContainsFunc(q, func(q Queue) bool { return q.Live == 2 && q.Name == "lost-1" }) {
		t.Errorf("%v", q)
	}
}
