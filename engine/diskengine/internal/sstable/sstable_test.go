package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestTableAgainstModel compares sstables of any entries, and any killed of them, with lists.
func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		all := things(rng, rapid.IntRange(0, 400).Draw(t, "entries"))
		cfg := small()
		cfg.BlockBytes = rapid.SampledFrom([]int{1, 1024, 32 << 10}).Draw(t, "block")
		r, err := write(d, 1, cfg, all)
		must(t, err)
		must(t, whole(r, all, nil))

		alive := make([]bool, len(all))
		for i := range alive {
			alive[i] = true
		}
		for range rapid.IntRange(0, 3).Draw(t, "rounds") {
			if n := len(all); n > 0 {
				from := rng.IntN(n)
				to := from + rng.IntN(n-from+1)
				killed := 0
				for i := from; i < to; i++ {
					if alive[i] {
						killed++
					}
					alive[i] = false
				}
				if got := killRange(r, uint32(from), uint32(to)); got != killed {
					t.Fatalf("killed %d in [%d, %d), want %d", got, from, to, killed)
				}
				one := rng.IntN(n)
				if got := r.Kill(uint32(one)); got != alive[one] {
					t.Fatalf("kill of %d: %v", one, got)
				}
				alive[one] = false
			}
			must(t, whole(r, all, alive))
		}
		for range 20 {
			p := Place{Queue: uint32(rng.IntN(20)), At: int64(rng.IntN(len(all)/3+8)) - 6, ID: uint64(rng.IntN(3*len(all) + 20))}
			want := sort.Search(len(all), func(i int) bool { return all[i].Compare(p) >= 0 })
			if got, err := search(r, p); err != nil || int(got) != want {
				t.Fatalf("search of %v: %d, %v, want %d", p, got, err, want)
			}
			from, to := rng.IntN(len(all)+1), rng.IntN(len(all)+1)
			back := rng.IntN(2) == 0
			must(t, scanned(r.scan(uint32(from), uint32(to), back), all, alive, from, to, back))
			count := 0
			for i := from; i < to; i++ {
				if alive[i] {
					count++
				}
			}
			if got := r.Count(uint32(from), uint32(to)); got != count {
				t.Fatalf("%d alive in [%d, %d), want %d", got, from, to, count)
			}
			q, ok := r.Queue(p.Queue)
			in := slices.DeleteFunc(slices.Clone(all), func(x thing) bool { return x.Queue != p.Queue })
			if ok != (len(in) > 0) || ok && (int(q.To-q.From) != len(in) || q.MinAt != in[0].At || q.MaxAt != in[len(in)-1].At) {
				t.Fatalf("queue %d is %+v, %v", p.Queue, q, ok)
			}
			if _, ok, err := r.FindID(uint64(rng.IntN(3*len(all)+20))/3*3 + 11); ok || err != nil {
				t.Fatalf("found an id that is not there: %v", err)
			}
			if _, ok, err := r.FindKey(keyOf(len(all) + rng.IntN(1000))); ok || err != nil {
				t.Fatalf("found a key that is not there: %v", err)
			}
		}
		saved, _ := r.AppendBits(nil)
		must(t, r.Close())
		again, err := Open(d, "/runs", 1, cfg)
		must(t, err)
		if !again.RestoreBits(saved) {
			t.Fatal("the deletion bitmap cannot be read")
		}
		must(t, whole(again, all, alive))
		must(t, again.Close())
		if d.Handles() != 0 {
			t.Fatalf("%d files are open", d.Handles())
		}
	})
}

// TestHostileHashes writes entries whose hashes collide in all that is looked at first.
func TestHostileHashes(t *testing.T) {
	d := newDisk(t)
	var all []thing
	for i := range 1500 {
		k := Key{15: byte(i), 14: byte(i >> 8)} // one first half for all
		if i%3 == 0 {
			k = Key{0: 255, 1: 255, 2: 255, 3: 255, 4: 255, 5: 255, 6: 255, 7: 255, 15: byte(i), 14: byte(i >> 8)}
		}
		if i == 0 {
			k[13] = 1
		}
		all = append(all, thing{Place{1, 5, uint64(i)}, k, []byte{1}})
	}
	r := written(t, d, 1, small(), all)
	must(t, whole(r, all, nil))
	if pos, ok, err := r.FindKey(Key{13: 2}); ok || err != nil { // the first half alone is no match
		t.Errorf("a key that nobody has is found at %d, %v", pos, err)
	}
	must(t, r.Close())

	same := slices.Clone(all)
	for i := range same {
		same[i].key = keyOf(1)
	}
	r = written(t, d, 2, small(), same)
	must(t, r.Verify(nil))
	for i := len(same) - 1; i >= 0; i-- { // the last alive is found before all that are dead
		if pos, ok, err := r.FindKey(keyOf(1)); err != nil || !ok || int(pos) != i {
			t.Fatalf("%d: %d, %v, %v", i, pos, ok, err)
		}
		r.Kill(uint32(i))
	}
	if _, ok, err := r.FindKey(keyOf(1)); ok || err != nil || !r.MayHold(keyOf(1)) {
		t.Fatalf("found a dead one: %v", err)
	}
	must(t, r.Close())
}

// TestManyInOneInstant finds its way among entries with one time.
func TestManyInOneInstant(t *testing.T) {
	n := disktest.Thorough(40_000, 250)
	dir, cfg := t.TempDir(), &Config{ID: 1, BlockBytes: 4096}
	w, err := Create(vfs.OS{}, dir, 1, cfg)
	must(t, err)
	for i := range n {
		must(t, w.Add(Place{3, 1000, uint64(i) * 2}, keyOf(i), nil))
	}
	r, err := w.Finish()
	must(t, err)
	must(t, r.Verify(nil))
	for _, i := range []int{0, 1, n / 2, n - 1, n} {
		for _, id := range []uint64{uint64(i) * 2, max(1, uint64(i)*2) - 1} {
			want := int(id+1) / 2
			if got, err := search(r, Place{3, 1000, id}); err != nil || int(got) != want {
				t.Errorf("search of %d: %d, %v, want %d", id, got, err, want)
			}
		}
	}
	if got, err := search(r, Place{3, 1001, 0}); err != nil || int(got) != n {
		t.Errorf("the end is %d, %v", got, err)
	}
	killRange(r, 1, uint32(n-1))
	s := r.ScanBack(0, r.Len())
	for _, want := range []int{n - 1, 0} {
		if !s.Next() || int(s.Entry().Pos) != want {
			t.Errorf("%d: %v", want, s.Entry().Pos)
		}
	}
	if s.Next() || s.Err() != nil {
		t.Errorf("more, or %v", s.Err())
	}
	must(t, s.Close())
	must(t, r.Close())
}

// TestLongValues writes values of many blocks, which are read alone.
func TestLongValues(t *testing.T) {
	d, cfg := newDisk(t), small()
	paces, syncs := 0, 0
	cfg.Pace = func(int) error { paces++; return nil }
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync {
			syncs++
		}
		return nil
	})
	long := func(i, n int) []byte { return bytes.Repeat([]byte{byte(i)}, n) }
	all := []thing{
		{Place{1, 1, 1}, keyOf(1), long(1, 3<<20)},
		{Place{1, 1, 2}, keyOf(2), nil},
		{Place{1, 2, 3}, keyOf(3), long(3, 1024-blockHead-mostHead)},
		{Place{1, 2, 4}, keyOf(4), long(4, 1024-blockHead-mostHead+1)},
		{Place{1, 2, 5}, keyOf(5), long(5, 2<<20)},
		{Place{2, 1, 6}, keyOf(6), []byte("short")},
	}
	r := written(t, d, 1, cfg, all)
	if paces < 5<<20/outSlice || syncs < 5<<20/(32<<10) {
		t.Errorf("Pace was called %d times, there were %d syncs", paces, syncs)
	}
	must(t, whole(r, all, nil))
	if len(r.blocks) != 6 {
		t.Errorf("%d blocks", len(r.blocks))
	}
	must(t, r.Close())
}

// TestAddRefuses what would not be in order or is too long, and says why.
func TestAddRefuses(t *testing.T) {
	d := newDisk(t)
	w, err := Create(d, "/runs", 1, small())
	must(t, err)
	must(t, w.Add(Place{1, 5, 5}, Key{}, nil))
	for _, p := range []Place{{1, 5, 4}, {1, 4, 6}, {0, 9, 9}} {
		if err := w.Add(p, Key{}, nil); !errors.Is(err, ErrOrder) {
			t.Errorf("%v: %v", p, err)
		}
	}
	must(t, w.Add(Place{1, 5, 5}, Key{}, nil)) // the same place twice is let through
	w.n = MaxEntries
	if err := w.Add(Place{2, 1, 1}, Key{}, nil); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	must(t, w.Abort())
	must(t, w.Abort())
	if err := w.Add(Place{2, 1, 1}, Key{}, nil); !errors.Is(err, ErrDone) {
		t.Error(err)
	}
	if _, err := w.Finish(); !errors.Is(err, ErrDone) {
		t.Error(err)
	}
	if _, err := Open(d, "/runs", 1, small()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	r := written(t, d, 2, small(), []thing{{Place{0, math.MinInt64, 0}, Key{}, nil}, {Place{math.MaxUint32, math.MaxInt64, math.MaxUint64}, keyOf(1), nil}})
	must(t, r.Verify(nil))
	if _, err := Create(d, "/runs", 2, small()); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	must(t, r.Close())
}

// TestPaceEndsTheWork when it errs.
func TestPaceEndsTheWork(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(1, 1)), 300)
	for stop := 1; ; stop++ {
		calls := 0
		cfg.Pace = func(int) error {
			if calls++; calls == stop {
				return errTest
			}
			return nil
		}
		r, err := write(d, 1, cfg, all)
		if err == nil {
			must(t, errors.Join(r.Remove()))
			if calls < 2 {
				t.Errorf("Pace was called %d times", calls)
			}
			break
		}
		if names, _ := d.List("/runs"); !errors.Is(err, errTest) || len(names) > 0 || d.Handles() > 0 {
			t.Fatalf("%v, %d files open, left %v", err, d.Handles(), names)
		}
	}
}

// TestFileGoesWithTheLastScan closes and removes an sstable that is being read.
func TestFileGoesWithTheLastScan(t *testing.T) {
	d := newDisk(t)
	all := things(rand.New(rand.NewPCG(2, 2)), 300)
	r := written(t, d, 1, small(), all)
	one, other := r.Scan(0, 300), r.ScanBack(0, 300)
	if !one.Next() {
		t.Fatal(one.Err())
	}
	must(t, r.Remove())
	must(t, r.Remove())
	must(t, r.Close())
	if err := scanned(other, all, nil, 0, 300, true); err != nil {
		t.Error(err)
	}
	if d.Handles() != 1 || !one.Next() {
		t.Errorf("%d files are open: %v", d.Handles(), one.Err())
	}
	if s := r.Scan(0, 300); s.Next() || !errors.Is(s.Err(), ErrClosed) || s.Close() != nil {
		t.Error(s.Err())
	}
	_, _, keyErr := r.FindKey(keyOf(1))
	_, _, idErr := r.FindID(all[0].ID)
	_, getErr := r.Get(0)
	_, searchErr := search(r, Place{5, 20, 1})
	for _, err := range []error{keyErr, idErr, getErr, searchErr, r.Verify(nil), EachKey([]*Table{r}, nil), EachID([]*Table{r}, nil)} {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	must(t, one.Close())
	must(t, one.Close())
	names, err := d.List("/runs")
	if d.Handles() != 0 || len(names) != 0 || one.Next() {
		t.Errorf("%d files are open, there are %v: %v", d.Handles(), names, err)
	}
}

// TestSweep removes the sstables that nobody names, and nothing else.
func TestSweep(t *testing.T) {
	d := newDisk(t)
	for i := range uint64(4) {
		must(t, written(t, d, i, small(), nil).Close())
	}
	for _, name := range []string{"/runs/other", "/runs/000000000000000Z.run", "/runs/1.run"} {
		f, err := d.Create(name)
		must(t, errors.Join(err, f.Close()))
	}
	must(t, Sweep(d, "/runs", func(n uint64) bool { return n == 2 }))
	names, err := d.List("/runs")
	if want := []string{"0000000000000002.run", "000000000000000Z.run", "1.run", "other"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
}

// TestKeysDependOnTheSecret and on the queue.
func TestKeysDependOnTheSecret(t *testing.T) {
	a, b := Secret{1}, Secret{2}
	keys := []Key{a.Key(1, "x"), a.Key(2, "x"), b.Key(1, "x"), a.Key(1, "y"), a.Key(1, string(make([]byte, 1000)))}
	for i, k := range keys {
		if slices.Index(keys, k) != i || k == (Key{}) {
			t.Errorf("%d: %x", i, k)
		}
	}
	if a.Key(1, "x") != keys[0] {
		t.Error("it changes")
	}
	// From the test vectors of SipHash's authors: key 00…0f, of the bytes 00, 01, 02, 03.
	s := Secret{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	if got := fmt.Sprintf("%x", s.Key(0x03020100, "")); got != "af8f9c2dc16481f87955cd7b7c6e0f7d" {
		t.Error(got)
	}
}

// TestSideBySide looks up, scans and kills from many goroutines while sstables are merged and
// removed: who is told something is told the truth.
func TestSideBySide(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(3, 3)), 1200)
	var parts [2][]thing
	for i, x := range all {
		parts[i%2] = append(parts[i%2], x)
	}
	sources := []*Table{written(t, d, 1, cfg, parts[0]), written(t, d, 2, cfg, parts[1])}
	var wg sync.WaitGroup
	merged := make(chan struct{})
	for k := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(k)))
			for {
				i := rng.IntN(2)
				r, part := sources[i], parts[i]
				pos := uint32(rng.IntN(len(part)))
				var err error
				switch rng.IntN(4) {
				case 0:
					if rng.IntN(4) == 0 {
						r.Kill(pos)
					}
				case 1:
					var e Entry
					if e, err = r.Get(pos); err == nil && e.Place != part[pos].Place {
						t.Errorf("entry %d is %v", pos, e.Place)
					}
				case 2:
					var found uint32
					var ok bool
					if found, ok, err = r.FindID(part[pos].ID); ok && found != pos {
						t.Errorf("id of %d leads to %d", pos, found)
					}
				case 3:
					s := r.Scan(pos, pos+40)
					for s.Next() {
						if e := s.Entry(); !bytes.Equal(e.Value, part[e.Pos].value) {
							t.Errorf("entry %d has another value", e.Pos)
						}
					}
					err = errors.Join(s.Err(), s.Close())
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	var m *Merged
	wg.Go(func() {
		defer close(merged)
		var err error
		if m, err = Merge(d, "/runs", 3, cfg, sources); err != nil {
			t.Error(err)
		}
		sources[0].Kill(0) // one at least dies behind the copy
		for _, r := range sources {
			if err := r.Remove(); err != nil {
				t.Error(err)
			}
		}
	})
	<-merged
	wg.Wait()
	if t.Failed() {
		return
	}
	m.CatchUp()
	alive := sources[0].Count(0, sources[0].Len()) + sources[1].Count(0, sources[1].Len())
	if n := m.Run.Count(0, m.Run.Len()); n != alive || alive == 0 || alive == len(all) {
		t.Errorf("%d are alive, want %d", n, alive)
	}
	for i, r := range sources {
		for pos := range r.Len() {
			now, ok := m.Locate(i, pos)
			if r.Alive(pos) != (ok && m.Run.Alive(now)) {
				t.Errorf("entry %d of %d: alive is %v", pos, i, r.Alive(pos))
			}
		}
	}
	must(t, m.Run.Verify(nil))
	must(t, m.Run.Close())
	if names, err := d.List("/runs"); err != nil || len(names) != 1 || d.Handles() != 0 {
		t.Errorf("%d files are open, there are %v: %v", d.Handles(), names, err)
	}
}
