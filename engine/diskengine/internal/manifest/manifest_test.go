package manifest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newDisk(t testing.TB, cfg *disktest.Config) *disktest.Disk {
	d := disktest.New(cfg)
	must(t, vfs.MkdirAll(d, "/store"))
	return d
}

// state is the n-th of a history: each has more sstables than the one before.
func state(n int) State {
	s := State{Store: 7, Secret: [16]byte{1, 2, 3}, Replay: uint64(n) << 20, NextID: uint64(n) + 1, NextQueue: 4, NextFile: 1000}
	for i := range n {
		s.Tables = append(s.Tables, Table{Number: uint64(i + 1), Area: uint8(i % 4), Entries: 100, Alive: uint32(i % 100), Bytes: 4096, Deleted: []byte{9, uint8(i)}})
	}
	return s
}

// TestFormat: bytes do not change by accident, and are those of docs/formats/manifest.md.
func TestFormat(t *testing.T) {
	s := State{Store: 1, Secret: [16]byte{2}, Replay: 3, NextID: 4, NextQueue: 5, NextFile: 100,
		Tables: []Table{{Number: 6, Area: 2, Entries: 9, Alive: 8, Bytes: 10, Deleted: []byte{7, 11}}}}
	pad := func(s string) string { return s + strings.Repeat("00", sector-len(s)/2) }
	want := func(begun, sum string) string {
		head := strings.Join([]string{
			"74617272796d6673", "05000000", sum,
			"0100000000000000", "02000000000000000000000000000000", "0300000000000000", "0400000000000000", "6400000000000000",
			"05000000", "01000000", begun, "00000000000000",
			"0600000000000000", "0a00000000000000", "09000000", "08000000", "02000000", "ac158512", "02", "000000",
		}, "")
		return pad(head) + pad(head) + pad("070b")
	}
	if got, want := hex.EncodeToString(s.encode()), want("00", "5debb609"); got != want {
		t.Errorf("got  %s\nwant %s", got[:300], want[:300])
	}
	s.Begun = true
	if got, want := hex.EncodeToString(s.encode()), want("01", "62cfe769"); got != want {
		t.Errorf("got  %s\nwant %s", got[:300], want[:300])
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{
			Store: rapid.Uint64().Draw(t, "store"), Replay: rapid.Uint64().Draw(t, "replay"), NextID: rapid.Uint64Min(1).Draw(t, "id"),
			NextQueue: rapid.Uint32Min(1).Draw(t, "queue"), NextFile: math.MaxUint64, Begun: rapid.Bool().Draw(t, "begun"),
		}
		last := uint64(0)
		for range rapid.IntRange(0, 20).Draw(t, "runs") {
			last += rapid.Uint64Range(1, 1<<50).Draw(t, "step")
			r := Table{Number: last, Area: rapid.Byte().Draw(t, "area"), Entries: rapid.Uint32Range(1, math.MaxInt32).Draw(t, "entries"),
				Bytes: rapid.Uint64().Draw(t, "bytes"), Deleted: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "deleted")}
			if r.Alive = r.Entries; len(r.Deleted) == 0 {
				r.Deleted = nil
			} else {
				r.Alive = rapid.Uint32Range(0, r.Entries).Draw(t, "alive")
			}
			s.Tables = append(s.Tables, r)
		}
		got, _, reason, _ := decode(s.encode())
		if reason != "" || !reflect.DeepEqual(got, s) {
			t.Fatalf("wrote %+v, read %+v: %s", s, got, reason)
		}
		for _, r := range s.Tables {
			if found, ok := s.Table(r.Number); !ok || !reflect.DeepEqual(found, r) || !s.Names(r.Number) {
				t.Fatalf("sstable %d is found as %+v", r.Number, found)
			}
		}
		if _, ok := s.Table(last + 1); ok || s.Names(0) {
			t.Fatal("there is an sstable that is none")
		}
	})
}

// TestRefused: what would not be a store is not written, and the manifest before counts.
func TestRefused(t *testing.T) {
	d := newDisk(t, nil)
	m, err := Create(d, "/store", state(1))
	must(t, err)
	for name, spoil := range map[string]func(*State){
		"no next id":                    func(s *State) { s.NextID = 0 },
		"no next queue":                 func(s *State) { s.NextQueue = 0 },
		"no next file":                  func(s *State) { s.NextFile = 0 },
		"sstables out of order":         func(s *State) { s.Tables[1].Number = 1 },
		"sstable 0":                     func(s *State) { s.Tables[0].Number = 0 },
		"an sstable yet to come":        func(s *State) { s.NextFile = 3 },
		"an empty sstable":              func(s *State) { s.Tables[0].Entries = 0 },
		"more alive than are":           func(s *State) { s.Tables[0].Alive = 101 },
		"dead without deletion bitmaps": func(s *State) { s.Tables[0].Deleted = nil },
		"more sstables than bound":      func(s *State) { s.Tables = make([]Table, MaxTables+1) },
		"bitmaps longer than is read": func(s *State) {
			long := make([]byte, maxSize/2) // never touched, so it takes no memory
			s.Tables[0].Deleted, s.Tables[1].Deleted = long, long
		},
	} {
		s := state(3)
		spoil(&s)
		if err := m.Write(s); err == nil || errors.Is(err, ErrFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := Read(d, "/store"); err != nil || !reflect.DeepEqual(got, state(1)) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestOpenAndCreate(t *testing.T) {
	d := newDisk(t, nil)
	if _, err := Open(d, "/store"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open where there is none: %v", err)
	}
	m, err := Create(d, "/store", state(0))
	must(t, err)
	if _, err := Create(d, "/store", state(0)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("make a second one: %v", err)
	}
	long := func() State { // is written in several slices
		s := state(MaxTables / 100)
		s.Tables[5].Deleted = bytes.Repeat([]byte{5}, 3<<19+7)
		return s
	}
	s := long()
	must(t, m.Write(s))
	s.Tables[0].Alive = 77 // not the manifest's any more
	again, err := Open(d, "/store")
	must(t, err)
	if want := long(); !reflect.DeepEqual(again.State(), want) || !reflect.DeepEqual(m.State(), want) {
		t.Error("it does not say what was written")
	}
	if d.Handles() != 0 {
		t.Errorf("%d files are open", d.Handles())
	}
}

// TestOtherVersions: another version is refused as such where the checksum of the file, as in earlier ones, or of the
// head is right, else as damaged.
func TestOtherVersions(t *testing.T) {
	for name, c := range map[string]struct {
		version uint32
		covers  int // bytes that the checksum covers; 0: it is wrong
		want    error
	}{
		"an earlier one": {version - 1, 5 * sector, vfs.ErrVersion},
		"a newer one":    {version + 1, headSize + 3*tableSize, vfs.ErrVersion},
		"damage":         {version + 1, 0, ErrDamaged},
	} {
		d := newDisk(t, nil)
		s := state(3)
		b := s.encode()
		for at := 0; at <= sector; at += sector {
			le.PutUint32(b[at+8:], c.version)
		}
		if c.covers > 0 {
			le.PutUint32(b[12:], vfs.HeaderSum(b[:c.covers], 0))
		}
		must(t, vfs.WriteFile(d, "/store/"+Name, b))
		if _, err := Open(d, "/store"); !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// left checks what is read of a manifest of 3 sstables that is damaged from one byte to another: it is refused in one
// line, and salvaged but for the deletion bitmap that was there.
func left(t *testing.T, b []byte, from, to int) {
	t.Helper()
	got, err := parse("f", b)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "f, offset ") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("bytes %d to %d: %v", from, to, err)
	}
	want := state(3)
	for i := range want.Tables {
		if at := (2 + i) * sector; from < at+len(want.Tables[i].Deleted) && to > at {
			want.Tables[i].Deleted = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("bytes %d to %d: read %+v, want %+v", from, to, got, want)
	}
}

// TestRot: each bit that changes, each sector that is lost and each byte that is missing at the end is noticed, and
// costs at most one deletion bitmap, or those that are missing.
func TestRot(t *testing.T) {
	s := state(3)
	b := s.encode()
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			left(t, b, i, i+1)
			b[i] ^= 1 << bit
		}
	}
	for at := 0; at < len(b); at += sector {
		for _, c := range []byte{0, 0xff} {
			other := bytes.Clone(b)
			copy(other[at:], bytes.Repeat([]byte{c}, sector))
			left(t, other, at, at+sector)
		}
	}
	for i := range len(b) {
		if i >= sector {
			left(t, b[:i], i, math.MaxInt)
		} else if got, err := parse("f", b[:i]); !errors.Is(err, ErrDamaged) || i < headSize && got.NextID > 0 {
			t.Fatalf("%d bytes: %v", i, err)
		}
	}
	left(t, append(b, 0), len(b), len(b)+1)
}

// TestSectorsOfManySSTables: a head of many sectors is read where a sector of either copy is lost, and not where the
// same one of both is.
func TestSectorsOfManySSTables(t *testing.T) {
	s := state(500)
	b := s.encode()
	copied := padded(headSize + 500*tableSize)
	for at := 0; at < copied; at += sector {
		for _, lose := range [][]int{{at}, {copied + at}, {at, copied + at}} {
			d, other := newDisk(t, nil), bytes.Clone(b)
			for _, from := range lose {
				clear(other[from : from+sector])
			}
			must(t, vfs.WriteFile(d, "/store/"+Name, other))
			got, err := Read(d, "/store")
			if one := len(lose) == 1; !errors.Is(err, ErrDamaged) || one && !reflect.DeepEqual(got, s) || !one && got.NextID > 0 {
				t.Fatalf("without the sectors at %d: %d sstables, %v", lose, len(got.Tables), err)
			}
		}
	}
}

// TestZeros: what no release wrote is damage, though its checksum is right.
func TestZeros(t *testing.T) {
	for _, off := range []int{72, 73, 79, headSize + 33} {
		s := state(1)
		head := s.encodeHead()
		head[off] = 2
		le.PutUint32(head[12:], vfs.HeaderSum(head, 0))
		b := s.encode()
		copy(b, head)
		copy(b[sector:], head)
		if _, err := parse("f", b); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", off, err)
		}
	}
}

// TestRestore: a deletion bitmap is not applied to an sstable with another number of entries, which may have the
// number of the sstable in a store that was restored from a backup.
func TestRestore(t *testing.T) {
	d := newDisk(t, nil)
	w, err := sstable.Create(d, "/store", 1, &sstable.Config{ID: 7})
	must(t, err)
	for id := range uint64(3) {
		must(t, w.Add(sstable.Place{Queue: 1, ID: id + 1}, sstable.Key{}, []byte("v")))
	}
	r, err := w.Finish()
	must(t, err)
	r.Kill(1)
	bits, alive := r.AppendBits(nil)
	must(t, r.Close())
	for _, entries := range []uint32{3, 5} {
		r, err := sstable.Open(d, "/store", 1, &sstable.Config{ID: 7})
		must(t, err)
		of := Table{Number: 1, Entries: entries, Alive: uint32(alive), Deleted: bits}
		fits := entries == r.Len()
		if err := of.Restore("/store", r); errors.Is(err, ErrDamaged) == fits || r.Alive(1) == fits {
			t.Errorf("of %d entries: %v, alive %v", entries, err, r.Alive(1))
		}
		must(t, r.Close())
	}
}

// FuzzDecode: nothing panics, what is read well is what would be written, and what is read of a damaged file is no more
// than it has.
func FuzzDecode(f *testing.F) {
	for n := range 4 {
		s := state(n)
		f.Add(s.encode(), uint16(0))
		f.Add(s.encode(), uint16(sector))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		b = bytes.Clone(b)
		if head := b[min(int(at), len(b)):]; len(head) >= headSize { // or nothing gets by
			size := uint64(headSize) + uint64(le.Uint32(head[tablesAt:]))*tableSize
			le.PutUint32(head[12:], vfs.HeaderSum(head[:min(size, uint64(len(head)))], 0))
		}
		s, _, reason, err := decode(b)
		if err != nil {
			return
		}
		if reason == "" && !bytes.Equal(s.encode(), b) {
			t.Errorf("%+v would be written otherwise", s)
		}
		has := 0
		for _, r := range s.Tables {
			has += tableSize + len(r.Deleted)
		}
		if has > len(b) {
			t.Errorf("%d bytes are read of %d", has, len(b))
		}
	})
}
