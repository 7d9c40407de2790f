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
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newDisk(t testing.TB, cfg *vfstest.Config) *vfstest.Disk {
	d := vfstest.New(cfg)
	must(t, vfs.MkdirAll(d, "/store"))
	return d
}

// state is the n-th of a history: each has more sstables than the one before.
func state(n int) State {
	s := State{Store: 7, Secret: [16]byte{1, 2, 3}, Replay: uint64(n) << 20, NextID: uint64(n) + 1, NextQueue: 4, NextFile: 1000}
	for i := range n {
		s.Tables = append(s.Tables, Table{Number: uint64(i + 1), Area: uint8(i % 3), Entries: 100, Alive: uint32(i % 100), Bytes: 4096, Deleted: []byte{9, uint8(i)}})
	}
	return s
}

// TestFormat: bytes do not change by accident, and are those of docs/formats/manifest.md.
func TestFormat(t *testing.T) {
	s := State{Store: 1, Secret: [16]byte{2}, Replay: 3, NextID: 4, NextQueue: 5, NextFile: 100,
		Tables: []Table{{Number: 6, Area: 2, Entries: 9, Alive: 8, Bytes: 10, Deleted: []byte{7, 11}}}}
	want := strings.Join([]string{
		"74617272796d6673", "02000000", "c11150c9", "8200000000000000", "0000000000000000",
		"0100000000000000", "02000000000000000000000000000000", "0300000000000000", "0400000000000000", "6400000000000000", "0000000000000000",
		"05000000", "01000000",
		"0600000000000000", "0a00000000000000", "09000000", "08000000", "02000000", "02", "000000", "070b",
	}, "")
	if got := hex.EncodeToString(s.encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s.Begun = true
	want = strings.Replace(want, "8200000000000000"+"0000000000000000", "8200000000000000"+"0100000000000000", 1)
	want = strings.Replace(want, "c11150c9", "52a65e1d", 1)
	if got := hex.EncodeToString(s.encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
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

// TestNewer: a version to come is refused as such where its checksum is right, else as damaged.
func TestNewer(t *testing.T) {
	d := newDisk(t, nil)
	s := state(2)
	b := s.encode()
	le.PutUint32(b[8:], version+1)
	write := func() {
		t.Helper()
		f, err := d.Create("/store/" + Name)
		must(t, err)
		_, err = f.WriteAt(b, 0)
		must(t, errors.Join(err, f.Close()))
	}
	write()
	if _, err := Open(d, "/store"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a version that is damage: %v", err)
	}
	must(t, d.Remove("/store/"+Name))
	le.PutUint32(b[12:], vfs.HeaderSum(b, 0))
	write()
	if _, err := Open(d, "/store"); !errors.Is(err, vfs.ErrVersion) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a newer version: %v", err)
	}
}

// TestRot: each bit that changes, and each byte that is missing, is noticed and its file named.
func TestRot(t *testing.T) {
	s := state(2)
	whole := s.encode()
	for i := range whole {
		for bit := range 8 {
			b := append([]byte(nil), whole...)
			b[i] ^= 1 << bit
			if _, err := parse("f", b); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "f, offset ") {
				t.Fatalf("byte %d, bit %d: %v", i, bit, err)
			}
		}
		if _, err := parse("f", whole[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes: %v", i, err)
		}
	}
	if _, err := parse("f", append(whole, 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestZeros: what no release wrote is damage, though its checksum is right.
func TestZeros(t *testing.T) {
	for _, off := range []int{24, 25, 31, 80, headSize + fixedSize + 30} {
		s := state(1)
		b := s.encode()
		b[off] = 2
		le.PutUint32(b[12:], vfs.HeaderSum(b, 0))
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

// FuzzDecode: nothing panics, and what is read well is what would be written.
func FuzzDecode(f *testing.F) {
	s := state(2)
	f.Add(s.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 16 {
			le.PutUint32(b[12:], vfs.HeaderSum(b, 0)) // or nothing gets by
		}
		s, _, reason, err := decode(b)
		if reason != "" || err != nil {
			return
		}
		if again := s.encode(); !bytes.Equal(again, b) {
			t.Errorf("%+v would be written otherwise", s)
		}
	})
}
