package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// segments are the paths of those of a log.
func segmentsOf(t *testing.T, d *disktest.Disk, dir string) (all []string) {
	t.Helper()
	names, err := d.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// TestSalvage turns bits all over a log of several segments: all entries are given but those that
// stand in the frame that was spoilt, in their order, and between them a gap.
func TestSalvage(t *testing.T) {
	d := disktest.New(nil)
	if err := d.Mkdir("/log"); err != nil {
		t.Fatal(err)
	}
	cfg := &Config{ID: 3, SegmentBytes: minSegment, Spares: 1, RetryFor: -1}
	l, _, err := Open(d, "/log", cfg, 0, func(Entry) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	var want []string
	starts := map[string]bool{}
	for i := range 120 {
		b := fmt.Appendf(nil, "%d-%s", i, make([]byte, rng.IntN(3000)))
		if _, err := l.Append(7, b); err != nil {
			t.Fatal(err)
		}
		if err := l.Wait(t.Context(), l.End()); err != nil {
			t.Fatal(err)
		}
		want, starts[string(b)] = append(want, string(b)), true
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	names := segmentsOf(t, d, "/log")
	if len(names) < 3 {
		t.Fatalf("%d segments", len(names))
	}
	given := func(d *disktest.Disk, names []string, from Pos) (got []string, gaps []Gap) {
		err := Salvage(d, names, cfg, from, func(e Entry) error { got = append(got, string(e.Bytes)); return nil },
			func(g Gap) error { gaps = append(gaps, g); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return got, gaps
	}
	if got, gaps := given(d, names, 0); len(got) != len(want) || len(gaps) > 0 {
		t.Fatalf("%d entries of %d, %v", len(got), len(want), gaps)
	}
	lost := 0
	for k := range disktest.Thorough(60, 20) {
		name := names[rng.IntN(2)]
		off := rng.Int64N(minSegment)
		d.Flip(name, off, 1<<(k%8))
		got, gaps := given(d, names, [...]Pos{0, Unknown}[k%2])
		d.Flip(name, off, 1<<(k%8))
		at := 0
		for _, b := range got {
			for at < len(want) && want[at] != b {
				at++
			}
			if at++; !starts[b] {
				t.Fatalf("%s, offset %d: an entry that never was", name, off)
			}
		}
		if at > len(want) || len(got) < len(want)-2 || len(got) < len(want) && len(gaps) != 1 {
			t.Fatalf("%s, offset %d: %d entries of %d, %v", name, off, len(got), len(want), gaps)
		}
		if len(got) < len(want) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("nothing was ever lost")
	}

	// A segment that is missing is a gap, first, within or last, where others say that it was durable.
	for i := range 2 {
		got, gaps := given(d, append(append([]string{}, names[:i]...), names[i+1:]...), 0)
		if len(got) == 0 || len(got) > len(want)-5 || len(gaps) != 1 {
			t.Errorf("without segment %d: %d entries of %d, %v", i, len(got), len(want), gaps)
		}
	}

	// A header tells of which store it is.
	for _, name := range names[:2] {
		id, ok, err := StoreOf(d, name)
		if err != nil || !ok || id != cfg.ID {
			t.Errorf("%s is of store %d, %v, %v", name, id, ok, err)
		}
	}
	d.Flip(names[0], 100, 1)
	if _, ok, err := StoreOf(d, names[0]); ok || err != nil {
		t.Errorf("a header that is broken proves something: %v", err)
	}
	for _, text := range []string{"", magic} {
		name := "/log/short" + text
		must(t, vfs.WriteFile(d, name, []byte(text)))
		if _, ok, err := StoreOf(d, name); ok || err != nil {
			t.Errorf("a header of %d bytes proves something: %v", len(text), err)
		}
	}
	if err := Salvage(d, []string{"/log/none"}, cfg, 0, nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if d.Handles() > 0 {
		t.Errorf("%d files are open", d.Handles())
	}
}

// TestSalvageOfWhatWasCutOff: what a crash cut off is not given where the next segment goes on
// before it, also if that has lost its header.
func TestSalvageOfWhatWasCutOff(t *testing.T) {
	cfg := small()
	cfg.Salt = func() uint64 { return 1 }
	whole, d := newDisk(t), newDisk(t)
	l, _ := open(t, whole, cfg, 0)
	add(t, l, 1, []byte("kept"))
	add(t, l, 1, []byte("cut off, and longer"))
	first, second := segmentName("/log", 1), segmentName("/log", 2)
	b, _, err := vfs.ReadStart(whole, first, minSegment) // nothing in it says yet that this was synced
	must(t, errors.Join(err, l.Close()))
	for _, text := range []string{"kept", "after"} { // each in a segment of its own
		l, _ := open(t, d, cfg, 0)
		add(t, l, 1, []byte(text))
		must(t, l.Close())
	}
	must(t, d.Remove(first))
	must(t, vfs.WriteFile(d, first, b))
	for range 2 {
		var got []string
		must(t, Salvage(d, []string{first, second}, cfg, 0, func(e Entry) error { got = append(got, string(e.Bytes)); return nil },
			func(g Gap) error { return fmt.Errorf("a gap: %+v", g) }))
		if !slices.Equal(got, []string{"kept", "after"}) {
			t.Errorf("%q are given", got)
		}
		d.Flip(second, 20, 1)
	}
}
