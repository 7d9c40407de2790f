package deletions

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

// TestFormat: header and table are those of docs/formats/deletions.md.
func TestFormat(t *testing.T) {
	d := newDisk(t, nil)
	r := newTable(t, d, 2, 3, 1)
	_, err := Write(d, dir, 10, store, []*sstable.Table{r}, nil, nil)
	must(t, err)
	got := written(t, d, Name(dir, 10))
	bits, _ := r.AppendBits(nil)
	want := []byte("tarrymrk\x02\x00\x00\x00")
	want = append(want, got[12:16]...) // the checksum
	want = le.AppendUint64(le.AppendUint64(le.AppendUint64(want, 7), 10), uint64(88+len(bits)))
	want = append(le.AppendUint32(want, 1), got[44:48]...)
	want = append(want, make([]byte, 16)...)
	want = le.AppendUint32(le.AppendUint32(le.AppendUint64(want, 2), r.Identity()), 3)
	want = le.AppendUint32(le.AppendUint32(want, uint32(len(bits))), crc32.Checksum(bits, castagnoli))
	if want = append(want, bits...); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	must(t, r.Close())
}

// TestRoundTrip writes who is dead in some sstables and restores it in some of them, in any order.
func TestRoundTrip(t *testing.T) {
	d := newDisk(t, nil)
	all := []*sstable.Table{newTable(t, d, 9, 1), newTable(t, d, 3, 64), newTable(t, d, 1, 5000), newTable(t, d, 5, 70_000)}
	number := uint64(100)
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		tables := rapid.Permutation(all).Draw(t, "runs")[rapid.IntRange(0, len(all)).Draw(t, "without"):]
		was := reopened(t, d, tables)
		for _, r := range was {
			from := rng.IntN(int(r.Len()))
			for pos := range rng.IntN(int(r.Len()) - from) {
				r.Kill(uint32(from + pos))
			}
			kill(r, some(rng, rng.IntN(3000), int(r.Len()))...)
		}
		number++
		alive, err := Write(d, dir, number, store, was, nil, nil)
		must(t, err)
		held, err := Verify(d, dir, number, store, nil)
		must(t, err)
		for i, r := range was {
			if int(alive[i]) != r.Count(0, r.Len()) || held[i] != r.Number() {
				t.Fatalf("%d of sstable %d are alive, held is %d; want %d of %d", alive[i], held[i], held[i], r.Count(0, r.Len()), r.Number())
			}
		}
		order := rapid.Permutation(was).Draw(t, "order")
		wanted := order[rapid.IntRange(0, len(order)).Draw(t, "passed over"):]
		got := reopened(t, d, wanted)
		must(t, Restore(d, dir, number, store, got))
		for i := range got {
			must(t, same(got[i], wanted[i]))
		}
		if len(held) != len(was) || d.Handles() != len(all)+len(was)+len(got) {
			t.Fatalf("%d sstables are held of %d, %d files are open", len(held), len(was), d.Handles())
		}
		closed(t, slices.Concat(was, got))
		must(t, d.Remove(Name(dir, number)))
	})
	closed(t, all)
}

// TestTaken: a file that is there is not touched.
func TestTaken(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 10, 3)}
	_, err := Write(d, dir, 5, store, tables, nil, nil)
	must(t, err)
	was := written(t, d, Name(dir, 5))
	kill(tables[0], 4)
	if _, err := Write(d, dir, 5, store, tables, nil, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a number that is taken: %v", err)
	}
	if string(written(t, d, Name(dir, 5))) != string(was) {
		t.Error("the file was changed")
	}
	if err := Restore(d, dir, 6, store, tables); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deletion bitmaps that are not there: %v", err)
	}
	closed(t, tables)
}

// TestRefusedToWrite: what could not be read again is not left behind.
func TestRefusedToWrite(t *testing.T) {
	d := newDisk(t, nil)
	r := newTable(t, d, 1, 10)
	if _, err := Write(d, dir, 5, store, []*sstable.Table{r, r}, nil, nil); err == nil {
		t.Error("the same sstable twice")
	}
	calls := 0
	if _, err := Write(d, dir, 5, store, []*sstable.Table{r}, func(n int) error {
		calls++
		return errTest
	}, nil); !errors.Is(err, errTest) || calls != 1 {
		t.Errorf("an error of pace: %v, %d calls", err, calls)
	}
	if names, err := d.List(dir); err != nil || len(names) != 1 || d.Handles() != 1 {
		t.Errorf("left behind %v, %v, %d files are open", names, err, d.Handles())
	}
	must(t, r.Close())
}

// TestPaced: the work stands in small slices with syncs between them, and what they tell is all
// there is.
func TestPaced(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 20_000), newTable(t, d, 2, 10_000)}
	rng := rand.New(rand.NewPCG(1, 2)) // so that little can be packed
	for _, r := range tables {
		kill(r, some(rng, int(r.Len())/2, int(r.Len()))...)
	}
	total, most, syncs := 0, 0, 0
	d.Hook(func(c vfstest.Call) error {
		if c.Op == vfstest.Sync {
			syncs++
		}
		return nil
	})
	file, err := d.Create(Name(dir, 50))
	must(t, err)
	w := writer{file: file, slice: 500, sync: 1500, pace: func(n int) error {
		total += n
		most = max(most, n)
		return nil
	}}
	_, err = w.write(header{store: store, number: 50}, tables)
	must(t, errors.Join(err, file.Close()))
	size := len(written(t, d, Name(dir, 50)))
	if total != size || most != 500 || syncs != (size-headerSize-2*rowSize)/1500 {
		t.Errorf("told of %d bytes of %d, at most %d at a time, with %d syncs", total, size, most, syncs)
	}
	read := 0
	_, err = Verify(d, dir, 50, store, func(n int) error { read += n; return nil })
	must(t, err)
	if read != size-headerSize-2*rowSize {
		t.Errorf("told of %d bytes of %d", read, size)
	}
	if _, err := Verify(d, dir, 50, store, func(int) error { return errTest }); !errors.Is(err, errTest) {
		t.Errorf("an error of pace: %v", err)
	}
	closed(t, tables)
}

// TestSweep removes what is not wanted, and nothing else.
func TestSweep(t *testing.T) {
	d := newDisk(t, nil)
	r := newTable(t, d, 1, 10)
	for n := range uint64(4) {
		_, err := Write(d, dir, n+0xa0, store, []*sstable.Table{r}, nil, nil)
		must(t, err)
	}
	others := []string{"00000000000000A1.marks", "a1.marks", "00000000000000a1.marks.new", "+0000000000000a1.marks", "x0000000000000a1.marks"}
	for _, name := range others {
		rewrite(t, d, dir+"/"+name, nil)
	}
	must(t, Sweep(d, dir, func(n uint64) bool { return n%2 == 1 }))
	want := append(others, "0000000000000001.run", "00000000000000a1.marks", "00000000000000a3.marks")
	slices.Sort(want)
	if names, err := d.Crash(vfstest.Nothing()).List(dir); err != nil || !slices.Equal(names, want) {
		t.Errorf("durable are %v, %v, want %v", names, err, want)
	}
	must(t, r.Close())
}

// TestSettled: until all has settled the file is none of deletion bitmaps, whatever a loss of power leaves of it; and
// where that fails there is none.
func TestSettled(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 3, 1)}
	settled := func(result error) func() error {
		return func() error {
			for _, after := range []*vfstest.Disk{d.Crash(vfstest.Everything()), d.Kill()} {
				if _, _, reason, _ := decodeHeader(written(t, after, Name(dir, 10))); reason == "" {
					t.Error("it is one already")
				}
			}
			return result
		}
	}
	failed := errors.New("of the test")
	if _, err := Write(d, dir, 10, store, tables, nil, settled(failed)); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := d.Open(Name(dir, 10)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what failed is left: %v", err)
	}
	alive, err := Write(d, dir, 10, store, tables, nil, settled(nil))
	must(t, err)
	if h, _, reason, _ := decodeHeader(written(t, d, Name(dir, 10))); reason != "" || h.number != 10 || alive[0] != uint32(tables[0].Count(0, tables[0].Len())) {
		t.Errorf("it is deletion bitmaps %d, %s; %v are alive", h.number, reason, alive)
	}
}
