package sstable

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestFilter lets through what is there and few others, in memory that is bounded and without a call
// of the file system, in an sstable as it was written and in one that was merged.
func TestFilter(t *testing.T) {
	const n, others = 30_000, 300_000
	d := newDisk(t)
	value := make([]byte, 200)
	write := func(number uint64, from int) *Table {
		w, err := Create(d, "/runs", number, nil)
		must(t, err)
		for i := range n {
			must(t, w.Add(Place{1, int64(i), uint64(from + i)}, keyOf(from+i), value))
		}
		r, err := w.Finish()
		must(t, err)
		return r
	}
	look := func(r *Table, n int) {
		const oneIn, least, most = 800, 2, 3
		t.Helper()
		calls, through := 0, 0
		d.Hook(func(disktest.Call) error { calls++; return nil })
		for i := range n {
			if !r.MayHold(keyOf(i)) {
				t.Fatalf("%d is not let through", i)
			}
		}
		for i := range others {
			if r.MayHold(keyOf(n + i)) {
				through++
			}
		}
		d.Hook(nil)
		if through > others/oneIn || through < others/oneIn/4 || calls > 0 {
			t.Errorf("%d of %d others were let through, want one in %d at most; %d calls", through, others, oneIn, calls)
		}
		if per := float64(r.Memory()) / float64(n); per < least || per > most {
			t.Errorf("%.2f bytes of memory an entry", per)
		}
	}
	one, two := write(1, 0), write(2, n)
	look(one, n)
	m, err := Merge(d, "/runs", 3, nil, []*Table{one, two})
	must(t, err)
	look(m.Run, 2*n)
	must(t, errors.Join(one.Close(), two.Close(), m.Run.Close()))
}

// TestFilterHoldsWhatWasAdded: whatever is added is let through, by a filter with room for it or with
// one block, and by what is read of it; and that has what docs/formats/sstable.md says.
func TestFilterHoldsWhatWasAdded(t *testing.T) {
	salts := [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64}))
		halves := rapid.SliceOfN(half, 1, 200).Draw(t, "halves")
		f := newFilter(rapid.IntRange(1, len(halves)).Draw(t, "room"))
		want := make([][8]uint32, len(f))
		for _, hi := range halves {
			f.add(hi)
			block := &want[(hi>>32)*uint64(len(want))>>32]
			for i, salt := range salts {
				block[i] |= 1 << (uint32(hi) * salt >> 27)
			}
		}
		var again filter
		for i := range f {
			row := f.row(nil, i)
			for w, word := range want[i] {
				if le.Uint32(row[4*w:]) != word {
					t.Fatalf("word %d of block %d of %d is %x, want %x", w, i, len(want), le.Uint32(row[4*w:]), word)
				}
			}
			again.appendRow(row)
		}
		for _, hi := range halves {
			if !f.may(hi) || !again.may(hi) {
				t.Fatalf("%x is not let through: %v, once read %v", hi, f.may(hi), again.may(hi))
			}
		}
	})
}

// TestFilterSizes: the blocks of a filter are as many as its keys take, in an sstable at most what may be
// read, and none is in two lines of a cache.
func TestFilterSizes(t *testing.T) {
	for _, c := range []struct {
		keys   int
		blocks int
	}{{0, 0}, {1, 1}, {256, 17}, {257, 18}, {30_000, 1993}} {
		f := newFilter(c.keys)
		if len(f) != c.blocks {
			t.Errorf("%d keys: %d blocks, want %d", c.keys, len(f), c.blocks)
		}
		if c.blocks > 1 && uintptr(unsafe.Pointer(&f[0]))%filterWidth != 0 {
			t.Errorf("%d keys: blocks in two lines", c.keys)
		}
		if most := filterBlocks(uint32(c.keys)); most < c.blocks {
			t.Errorf("%d keys: %d blocks are not read, %d at most", c.keys, c.blocks, most)
		}
	}
	for _, n := range []int64{100_000_000, MaxEntries} {
		if blocks := blocksFor(n); blocks != (n*filterBits+255)/256 || blocks > int64(filterBlocks(uint32(n))) || blocks > math.MaxInt32 {
			t.Errorf("%d keys: %d blocks", n, blocks)
		}
	}
}

// A sstable in which few of many are left has a filter for these, and one in which nobody has a key lets
// nothing through.
func TestFilterOfFew(t *testing.T) {
	d, cfg := newDisk(t), small()
	r := written(t, d, 1, cfg, things(rand.New(rand.NewPCG(5, 5)), 2000))
	for pos := range r.Len() - 10 {
		r.Kill(pos)
	}
	m, err := Merge(d, "/runs", 2, cfg, []*Table{r})
	must(t, err)
	if n := len(m.Run.filter); n != 1 {
		t.Errorf("%d blocks for 10 entries", n)
	}
	must(t, errors.Join(r.Close(), m.Run.Close()))

	all := things(rand.New(rand.NewPCG(6, 6)), 100)
	for i := range all {
		all[i].key = Key{}
	}
	r = written(t, d, 3, cfg, all)
	if n := len(r.filter); n != 0 || r.MayHold(keyOf(1)) {
		t.Errorf("%d blocks without keys", n)
	}
	m, err = Merge(d, "/runs", 4, cfg, []*Table{r})
	must(t, err)
	if m.Run.MayHold(keyOf(1)) || FiltersOf([]*Table{r, m.Run}).MayHold(keyOf(1)) {
		t.Error("a key may be where nobody has one")
	}
	must(t, errors.Join(m.Run.Verify(nil), r.Close(), m.Run.Close()))
}

// TestFilterForged opens and checks sstables whose filter is not theirs, with checksums that match.
func TestFilterForged(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(15, 15)), 400)
	r := written(t, d, 1, cfg, all)
	part := *r.footer.part(kindFilter)
	foot := r.Bytes() - footerSize
	forge := func(off, length int64, change func(b []byte)) error {
		was := make([]byte, length)
		must(t, r.readAt(was, off))
		b := slices.Clone(was)
		change(b)
		fix(r.seed, off, b[:blockHead+le.Uint32(b[4:])])
		_, err := r.file.WriteAt(b, off)
		must(t, err)
		again, err := Open(d, "/runs", 1, cfg)
		if err == nil {
			err = errors.Join(again.Verify(nil), again.Close())
		}
		_, back := r.file.WriteAt(was, off)
		must(t, back)
		return err
	}
	told := func(want string, err error) {
		t.Helper()
		var damage *vfs.DamageError
		if !errors.As(err, &damage) || damage.Reason != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	length := part.end - part.off
	must(t, forge(part.off, length, func([]byte) {}))
	told("a key that the filter does not let through", forge(part.off, length, func(b []byte) { clear(b[length/2:]) }))
	told("a table that cannot be", forge(part.off, length, func(b []byte) { le.PutUint32(b[4:], uint32(length-blockHead-1)) }))
	told("no filter", forge(foot, footerSize, func(b []byte) { le.PutUint64(b[blockHead+32+16*(kindFilter-1)+8:], uint64(part.off)) }))
	must(t, r.Close())

	w, err := Create(d, "/runs", 2, cfg)
	must(t, err)
	for _, x := range all {
		must(t, w.Add(x.Place, x.key, x.value))
	}
	_, err = w.finish(newFilter(40*len(all)), []stream{sorted(w.keys)}, []stream{sorted(w.ids)})
	told("a table that cannot be", err)
	must(t, w.Abort())
}

// TestFilters asks many sstables together, and those without keys among them: they say of any key what the
// runs do.
func TestFilters(t *testing.T) {
	d, cfg := newDisk(t), small()
	var tables []*Table
	for i := range 70 {
		all := things(rand.New(rand.NewPCG(16, uint64(i))), 60)
		for k := range all {
			if all[k].key = keyOf(60*i + k); i%9 == 3 {
				all[k].key = Key{}
			}
		}
		tables = append(tables, written(t, d, uint64(i), cfg, all))
	}
	for _, n := range []int{0, 1, 5, 70} {
		fs, held := FiltersOf(tables[:n]), 0
		for i := range 60 * 80 {
			key := keyOf(i)
			any := slices.ContainsFunc(tables[:n], func(r *Table) bool { return r.MayHold(key) })
			if fs.MayHold(key) != any {
				t.Fatalf("%d of %d sstables: %v", i, n, !any)
			}
			if any {
				held++
			}
		}
		if least := 60 * (n - (n+5)/9); held < least || held > least+100 {
			t.Errorf("%d keys may be in %d sstables, which have %d", held, n, least)
		}
	}
	for _, r := range tables {
		must(t, r.Close())
	}
}
