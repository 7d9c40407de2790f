package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// held is all that those who read a store are given: what lives in sstables, what their indexes lead
// to, and the entries of the log.
type held struct {
	tables []string
	log    []string
}

func read(t *testing.T, d *disktest.Disk) (h held) {
	t.Helper()
	state, err := manifest.Read(d, dir)
	must(t, err)
	secret := sstable.Secret(state.Secret)
	h.tables = append(h.tables, fmt.Sprintf("%+v", state))
	for _, is := range state.Tables {
		r := openTable(t, d, is)
		s := r.Scan(0, r.Len())
		for s.Next() {
			e := s.Entry()
			var byKey uint32
			n, size := binary.Uvarint(e.Value)
			if n > 0 {
				byKey, _, err = r.FindKey(secret.Key(e.Queue, string(e.Value[size:][:n])))
				must(t, err)
			}
			byID, _, err := r.FindID(e.ID)
			must(t, err)
			h.tables = append(h.tables, fmt.Sprintf("%d: %v %d %d %x", is.Number, e.Place, byID, byKey, e.Value))
		}
		must(t, errors.Join(s.Err(), s.Close(), r.Close()))
	}
	_, err = wal.Read(d, logDir, logConfig(), wal.Pos(state.Replay), func(e wal.Entry) error {
		h.log = append(h.log, fmt.Sprintf("%d-%d: %x", e.Start, e.End, e.Bytes))
		return nil
	})
	must(t, err)
	return h
}

// file is one of a store.
type file struct {
	name string
	size int64
	log  bool
	last bool // the last segment of the log that was begun
}

func bytesOf(t testing.TB, d *disktest.Disk, name string) []byte {
	t.Helper()
	f, err := d.Open(name)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	return b
}

// files are those of a store but for its lock.
func files(t testing.TB, d *disktest.Disk) (all []file) {
	t.Helper()
	last := -1
	for _, in := range []string{dir, tablesDir, logDir} {
		names, err := d.List(in)
		must(t, err)
		for _, name := range names {
			path := filepath.Join(in, name)
			if in == dir && name != manifest.Name {
				continue
			}
			b := bytesOf(t, d, path)
			if in == logDir && len(b) > 24 && string(b[:8]) == "tarrylog" && fmt.Sprintf("%016x.log", binary.LittleEndian.Uint64(b[16:])) == name {
				last = len(all)
			}
			all = append(all, file{name: path, size: int64(len(b)), log: in == logDir})
		}
	}
	if last >= 0 {
		all[last].last = true
	}
	return all
}

// span is a part of a file.
type span struct {
	name     string
	from, to int64
}

// damage does something to a store. It returns the files it was done to, and which of their bytes are
// not what they were.
func damage(t *testing.T, d *disktest.Disk, rng *rand.Rand) (what string, to []file, spoilt []span) {
	t.Helper()
	all := files(t, d)
	f := all[rng.IntN(len(all))]
	off := rng.Int64N(max(1, f.size))
	if f.log && rng.IntN(4) > 0 {
		off = rng.Int64N(max(1, min(f.size, 12<<10))) // where it is full
	}
	switch op := rng.IntN(100); {
	case f.size == 0:
		what = "nothing in it"
	case op < 50:
		what = fmt.Sprint("a bit at ", off)
		d.Flip(f.name, off, 1<<rng.IntN(8))
		spoilt = []span{{f.name, off, off + 1}}
	case op < 60:
		n := min(f.size-off, 1+rng.Int64N(2000))
		what = fmt.Sprintf("zeros for %d bytes at %d", n, off)
		d.Zero(f.name, off, n)
		spoilt = []span{{f.name, off, off + n}}
	case op < 75:
		what = fmt.Sprint("the end at ", off)
		d.Cut(f.name, off)
		spoilt = []span{{f.name, off, math.MaxInt64}}
	case op < 80:
		what = fmt.Sprint("more at ", f.size)
		d.Cut(f.name, f.size+1+rng.Int64N(5000))
	case op < 90:
		what = "no file"
		must(t, d.Remove(f.name))
		spoilt = []span{{f.name, 0, math.MaxInt64}}
	default:
		g := all[rng.IntN(len(all))]
		what = "each other's name"
		if g.name != f.name {
			must(t, d.Rename(f.name, dir+"/other"))
			must(t, d.Rename(g.name, f.name))
			must(t, d.Rename(dir+"/other", g.name))
		}
		if !f.log || !g.log { // only segments are known by what is in them
			spoilt = []span{{f.name, 0, math.MaxInt64}, {g.name, 0, math.MaxInt64}}
		}
		return what, []file{f, g}, spoilt
	}
	return what, []file{f}, spoilt
}

// history is one that was made of a store, and what it left.
type history struct {
	*maker
	sound  *disktest.Disk
	closed bool // else it was killed
	rng    *rand.Rand
	name   string // by which it is made again
}

// histories are five, of the seed in the environment variable TARRY_TEST_SEED or of a random one.
func histories(t *testing.T) iter.Seq[history] {
	seed := rand.Uint64()
	if s := os.Getenv("TARRY_TEST_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		must(t, err)
	}
	return func(yield func(history) bool) {
		for i := range uint64(5) {
			m := newMaker(t, seed+i)
			m.history(150)
			m.flush()
			m.history(60)
			h := history{maker: m, sound: m.kill(), closed: i%2 == 0, rng: rand.New(rand.NewPCG(seed, i)), name: fmt.Sprintf("TARRY_TEST_SEED=%d, store %d", seed, i)}
			if h.closed {
				h.sound = m.d
			}
			if !yield(h) {
				return
			}
		}
	}
}

// TestDamages does something to a file of a store, 500 times: the check never fails, and calls
// the store sound only if those who read it are given the same as before.
func TestDamages(t *testing.T) {
	noticed, harmless, cut := 0, 0, 0
	for h := range histories(t) {
		before := read(t, h.sound)
		for k := range disktest.Thorough(100, 50) {
			d := h.sound.Kill()
			what, to, _ := damage(t, d, h.rng)
			names := []string{}
			for _, f := range to {
				names = append(names, f.name)
			}
			at := fmt.Sprintf("%s, damage %d: %v has %s", h.name, k, names, what)
			rep := checked(t, d)
			if !rep.Sound() {
				noticed++
				named := func(f Finding) bool {
					return slices.ContainsFunc(to, func(g file) bool { return f.File == g.name || g.log && strings.HasPrefix(f.File, logDir) })
				}
				if !slices.ContainsFunc(rep.Findings, named) || strings.Contains(rep.Findings[0].String(), "\n") {
					t.Fatalf("%s: %v", at, rep.Findings)
				}
				continue
			}
			after := read(t, d)
			if !slices.Equal(after.tables, before.tables) {
				t.Fatalf("%s: it is called sound, and others are given", at)
			}
			if slices.Equal(after.log, before.log) {
				harmless++
				continue
			}
			cut++
			// Only what was written last can be taken for what a crash cut off.
			ofLast := slices.ContainsFunc(to, func(f file) bool { return f.last })
			isStart := len(after.log) <= len(before.log) && slices.Equal(after.log, before.log[:len(after.log)])
			if !ofLast || !isStart || rep.Torn == nil || h.closed && strings.HasPrefix(what, "a bit") {
				t.Fatalf("%s: it is called sound, and the log has %d entries of %d: %+v", at, len(after.log), len(before.log), rep.Torn)
			}
		}
	}
	t.Logf("%d were noticed, %d harmless, %d took the end of the log", noticed, harmless, cut)
	if noticed < 100 {
		t.Errorf("only %d were noticed", noticed)
	}
}

// TestBytes flips bits all over the manifest and the sstables: each is a finding there, unless the byte is one of the
// zeros between parts of an sstable.
func TestBytes(t *testing.T) {
	m := newMaker(t, 8)
	for range 2 {
		m.history(50)
		m.flush()
	}
	m.do(m.gone(m.stood()), m.gone(m.any(func(x *thing) bool { return x.at.Table != 0 && x.area == memtable.Dead })))
	m.writeDeletions()
	m.merge(memtable.Live)
	d := m.close()
	for _, f := range files(t, d) {
		if f.log {
			continue
		}
		b := bytesOf(t, d, f.name)
		for off := range f.size {
			const part = 4096 // where some begin
			rest := b[off:min(f.size, off/part*part+part)]
			between := strings.HasSuffix(f.name, ".run") && len(bytes.Trim(rest, "\x00")) == 0
			step := 5
			if strings.HasSuffix(f.name, ".run") {
				step = 401
			}
			if off%int64(max(1, step/disktest.Thorough(1, step))) != 0 {
				continue // the packages that read them look at each
			}
			d.Flip(f.name, off, 1<<(off%8))
			rep := checked(t, d)
			d.Flip(f.name, off, 1<<(off%8))
			if rep.Sound() && !between || !rep.Sound() && rep.Findings[0].File != f.name {
				t.Fatalf("%s, offset %d of %d: %v", f.name, off, f.size, rep.Findings)
			}
		}
	}
}
