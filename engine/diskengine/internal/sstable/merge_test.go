package sstable

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// where is an entry of a source.
type where struct {
	source int
	pos    uint32
}

// TestMergeAgainstModel merges sstables in which some are dead, while others die, and kills more
// before and after the last CatchUp.
func TestMergeAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, cfg := newDisk(t), small()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		all := things(rng, rapid.IntRange(0, 250).Draw(t, "entries"))
		k := rapid.IntRange(1, 5).Draw(t, "sources")
		parts := make([][]thing, k)
		from := make([]where, len(all))
		for i, x := range all {
			s := rng.IntN(k)
			from[i] = where{s, uint32(len(parts[s]))}
			parts[s] = append(parts[s], x)
		}
		var sources []*Table
		for i, part := range parts {
			sources = append(sources, written(t, d, uint64(i), cfg, part))
		}
		alive := make([]bool, len(all))
		die := func(n int) {
			for range n {
				if len(all) > 0 {
					i := rng.IntN(len(all))
					alive[i] = false
					sources[from[i].source].Kill(from[i].pos)
				}
			}
		}
		for i := range alive {
			alive[i] = true
		}
		die(rapid.IntRange(0, 200).Draw(t, "dead before"))
		atStart := slices.Clone(alive)
		hooked := 0
		d.Hook(func(disktest.Call) error { // somebody dies before each call of the file system
			hooked++
			die(rng.IntN(4))
			return nil
		})
		m, err := Merge(d, "/runs", 99, cfg, sources)
		d.Hook(nil)
		must(t, err)
		die(rapid.IntRange(0, 100).Draw(t, "dead afterwards"))
		m.CatchUp()
		die(rapid.IntRange(0, 10).Draw(t, "dead at last"))
		m.CatchUp()
		if n := m.CatchUp(); n != 0 {
			t.Fatalf("%d died twice", n)
		}

		var now []thing
		var left []bool
		for i := range all {
			pos, ok := m.Locate(from[i].source, from[i].pos)
			if alive[i] && !ok || ok && !atStart[i] || ok && int(pos) != len(now) {
				t.Fatalf("entry %d went to %d, %v", i, pos, ok)
			}
			if ok {
				now, left = append(now, all[i]), append(left, alive[i])
			}
		}
		must(t, whole(m.Run, now, left))
		for i, s := range sources {
			must(t, s.Verify(nil))
			if _, ok := m.Locate(i, s.Len()); ok {
				t.Fatal("located what is not there")
			}
			must(t, s.Remove())
		}
		must(t, whole(m.Run, now, left))
		must(t, m.Run.Close())
		if d.Handles() > 0 || hooked < 5 {
			t.Fatalf("%d files are open after %d calls", d.Handles(), hooked)
		}
	})
}

// manyGroups is how many entries an sstable of several groups has.
const manyGroups = 2*groupBits + 77

// ofManyGroups writes two sstables of several groups each, whose entries take turns.
func ofManyGroups(t *testing.T, d *disktest.Disk) (sources []*Table) {
	for i := range 2 {
		w, err := Create(d, "/runs", uint64(i), &Config{BlockBytes: 1 << 20})
		must(t, err)
		for k := range manyGroups {
			must(t, w.Add(Place{1, int64(k / 3), uint64(2*k + i)}, Key{}, nil))
		}
		r, err := w.Finish()
		must(t, err)
		sources = append(sources, r)
	}
	return sources
}

// TestCatchUpOfEachPosition lets one entry of each word die at a time, in every position of it: each CatchUp takes
// over just these.
func TestCatchUpOfEachPosition(t *testing.T) {
	d := newDisk(t)
	sources := ofManyGroups(t, d)
	m, err := Merge(d, "/runs", 9, nil, sources)
	must(t, err)
	for bit := range uint32(64) {
		var died []where
		for i := range sources {
			for pos := bit; pos < manyGroups; pos += 64 {
				sources[i].Kill(pos)
				died = append(died, where{i, pos})
			}
		}
		if n := m.CatchUp(); n != len(died) {
			t.Errorf("position %d of each word: %d deaths were taken over, of %d", bit, n, len(died))
		}
		for _, x := range died {
			if now, ok := m.Locate(x.source, x.pos); !ok || m.Run.Alive(now) {
				t.Fatalf("%+v lives in the new sstable", x)
			}
		}
	}
	if n := m.Run.Count(0, m.Run.Len()); n > 0 {
		t.Errorf("%d are alive of none", n)
	}
	for _, r := range append(sources, m.Run) {
		must(t, r.Close())
	}
}

// TestMergeOfManyGroups lets few die in sstables of many groups, and looks at each that went.
func TestMergeOfManyGroups(t *testing.T) {
	const n = manyGroups
	d := newDisk(t)
	cfg := &Config{BlockBytes: 1 << 20}
	sources := ofManyGroups(t, d)
	killRange(sources[0], groupBits-5, 2*groupBits+9)
	m, err := Merge(d, "/runs", 9, cfg, sources)
	must(t, err)
	if want := 2*n - groupBits - 14; int(m.Run.Len()) != want || m.Run.Count(0, m.Run.Len()) != want {
		t.Fatalf("%d entries, want %d", m.Run.Len(), want)
	}
	for _, died := range []where{{0, 0}, {0, n - 1}, {1, 2 * groupBits}, {1, 2*groupBits + 1}} {
		sources[died.source].Kill(died.pos)
		now, ok := m.Locate(died.source, died.pos)
		if e, err := m.Run.Get(now); err != nil || !ok || e.ID != uint64(2*died.pos)+uint64(died.source) {
			t.Errorf("%+v: %v, %v", died, e, err)
		}
		if k := m.CatchUp(); k != 1 || m.Run.Alive(now) {
			t.Errorf("%+v: %d died, alive is %v", died, k, m.Run.Alive(now))
		}
	}
	must(t, m.Run.Verify(nil))
	for _, r := range append(sources, m.Run) {
		must(t, r.Close())
	}
}

// TestMergeFails at each call, and leaves nothing behind; also where a source is damaged.
func TestMergeFails(t *testing.T) {
	d, cfg := newDisk(t), small()
	rng := rand.New(rand.NewPCG(4, 4))
	parts := [][]thing{things(rng, 60), things(rng, 30)}
	for at := int64(1); ; at++ {
		d := d
		if at > 1 {
			d = newDisk(t)
		}
		var sources []*Table
		for i, p := range parts {
			sources = append(sources, written(t, d, uint64(i), cfg, p))
		}
		start, hit := d.Calls(), false
		d.Hook(func(c disktest.Call) error {
			if c.N == start+at {
				hit = true
				return errTest
			}
			return nil
		})
		m, err := Merge(d, "/runs", 9, cfg, sources)
		d.Hook(nil)
		if hit != errors.Is(err, errTest) {
			t.Fatalf("call %d: %v", at, err)
		}
		if err == nil {
			must(t, m.Run.Close())
		} else if d.Handles() != 2 {
			t.Fatalf("call %d: %d files are open", at, d.Handles())
		}
		for i, r := range sources {
			must(t, whole(r, parts[i], nil))
			must(t, r.Close())
		}
		if !hit {
			break
		}
	}
	r := written(t, d, 50, cfg, parts[0])
	d.Flip(Name("/runs", 50), r.blocks[len(r.blocks)/2].off+20, 4)
	var damage *vfs.DamageError
	if _, err := Merge(d, "/runs", 51, cfg, []*Table{r}); !errors.As(err, &damage) || damage.File != r.name {
		t.Errorf("merged what is damaged: %v", err)
	}
	must(t, r.Close())
	if _, err := Merge(d, "/runs", 51, cfg, []*Table{r}); !errors.Is(err, ErrClosed) {
		t.Errorf("merged what is closed: %v", err)
	}
	if names, err := d.List("/runs"); err != nil || d.Handles() != 0 || slices.Contains(names, "0000000000000033.run") {
		t.Errorf("%d files are open, there are %v: %v", d.Handles(), names, err)
	}
}

// TestRanks compares with counting.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.Uint32Range(1, 3000).Draw(t, "bound")
		s := newRanks(bound)
		var in []uint32
		one := rapid.IntRange(1, 700).Draw(t, "one in")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		for i := range bound {
			if rng.IntN(one) == 0 {
				s.add(i)
				in = append(in, i)
			}
		}
		s.seal()
		k := uint32(0)
		for i := range bound {
			if s.below(i) != k {
				t.Fatalf("%d below %d, want %d", s.below(i), i, k)
			}
			if s.has(i) != (int(k) < len(in) && in[k] == i) {
				t.Fatalf("has %d: %v", i, s.has(i))
			}
			if s.has(i) {
				if s.at(k) != i {
					t.Fatalf("number %d is %d, want %d", k, s.at(k), i)
				}
				k++
			}
		}
	})
}

// TestMergeHoldsOneLongValue merges sstables whose values are long, whose turns come by turns: none is read
// before the one before it has been written.
func TestMergeHoldsOneLongValue(t *testing.T) {
	const runs, each, long = 12, 3, 1 << 20
	d, cfg := newDisk(t), small()
	var sources []*Table
	var all []thing
	for i := range runs {
		some := make([]thing, each)
		for k := range some {
			n := k*runs + i
			some[k] = thing{Place{1, int64(n), uint64(n)}, keyOf(n), noise(long + n)}
		}
		sources, all = append(sources, written(t, d, uint64(1+i), cfg, some)), append(all, some...)
	}
	order(all)
	held, most := 0, 0
	d.Hook(func(c disktest.Call) error {
		switch {
		case c.Op == disktest.Read && c.Len > long:
			held += c.Len
		case c.Op == disktest.Write:
			held -= c.Len
		}
		most = max(most, held)
		return nil
	})
	m, err := Merge(d, "/runs", 100, cfg, sources)
	must(t, err)
	d.Hook(nil)
	if most > long+long/2 {
		t.Errorf("%d bytes of long values were in memory, of which one has %d", most, long)
	}
	must(t, whole(m.Run, all, nil))
	for _, r := range append(sources, m.Run) {
		must(t, r.Close())
	}
}

// TestMergeTellsOfDamageInALongValue: it is read when its turn comes, and then told.
func TestMergeTellsOfDamageInALongValue(t *testing.T) {
	d, cfg := newDisk(t), small()
	r := written(t, d, 1, cfg, []thing{{Place{1, 1, 1}, keyOf(1), noise(10)}, {Place{1, 2, 2}, keyOf(2), noise(1 << 20)}})
	d.Flip(r.name, r.blocks[1].off+500_000, 1)
	_, err := Merge(d, "/runs", 2, cfg, []*Table{r})
	var damage *vfs.DamageError
	if !errors.As(err, &damage) || damage.File != r.name || damage.Offset != r.blocks[1].off {
		t.Errorf("%v", err)
	}
	if names, err := d.List("/runs"); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
	must(t, r.Close())
}
