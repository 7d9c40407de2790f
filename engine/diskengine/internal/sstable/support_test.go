package sstable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

var errTest = errors.New("of the test")

// failer is a testing.TB or a rapid.T.
type failer interface {
	Helper()
	Fatal(...any)
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// small makes sstables with small blocks, in small writes, whose salts are the same in each sstable.
func small() *Config {
	salt := uint64(0)
	return &Config{ID: 7, BlockBytes: 1024, SyncBytes: 16 << 10, slice: 3000, Salt: func() uint64 { salt += 0x9e3779b97f4a7c15; return salt }}
}

func newDisk(t failer) *disktest.Disk {
	d := disktest.New(nil)
	must(t, vfs.MkdirAll(d, "/runs"))
	return d
}

// thing is an entry of a test.
type thing struct {
	Place
	key   Key
	value []byte
}

var secret = Secret{1, 2, 3}

func keyOf(n int) Key { return secret.Key(uint32(n%7), fmt.Sprint("key-", n)) }

// things makes n that tell themselves apart: in some queues, many with the same time, one in
// four without a key, in the order of sstables. Ids are not dense.
func things(rng *rand.Rand, n int) []thing {
	all := make([]thing, n)
	for i := range all {
		p := Place{Queue: uint32(rng.IntN(4)) * 5, At: int64(rng.IntN(n/3+1)) - 5, ID: uint64(i)*3 + 10}
		value := make([]byte, rng.IntN(60))
		if rng.IntN(40) == 0 {
			value = make([]byte, 900+rng.IntN(2000)) // longer than a block, or nearly so
		}
		for j := range value {
			value[j] = byte(uint64(j) + p.ID)
		}
		value = binary.LittleEndian.AppendUint64(value, p.ID)
		all[i] = thing{p, Key{}, value}
		if rng.IntN(4) > 0 {
			all[i].key = keyOf(i)
		}
	}
	order(all)
	return all
}

func order(all []thing) {
	slices.SortFunc(all, func(a, b thing) int { return a.Compare(b.Place) })
}

func write(fs vfs.FS, number uint64, cfg *Config, all []thing) (*Table, error) {
	w, err := Create(fs, "/runs", number, cfg)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if err := w.Add(x.Place, x.key, x.value); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
	}
	r, err := w.Finish()
	return r, errors.Join(err, w.Abort())
}

func written(t failer, fs vfs.FS, number uint64, cfg *Config, all []thing) *Table {
	t.Helper()
	r, err := write(fs, number, cfg, all)
	must(t, err)
	return r
}

// whole compares all that an sstable says with what it should hold, and returns the first
// difference. An error of the sstable is one too.
func whole(r *Table, all []thing, alive []bool) error {
	if int(r.Len()) != len(all) {
		return fmt.Errorf("%d entries, want %d", r.Len(), len(all))
	}
	if err := r.Verify(nil); err != nil {
		return err
	}
	return same(r, all, alive)
}

// same compares all that can be asked. Nil: all are alive.
func same(r *Table, all []thing, alive []bool) error {
	if _, err := r.Get(r.Len()); !errors.Is(err, ErrNoEntry) {
		return fmt.Errorf("got what is not there: %w", err)
	}
	lives := func(i int) bool { return alive == nil || alive[i] }
	for i, x := range all {
		e, err := r.Get(uint32(i))
		if err != nil {
			return err
		}
		if e.Pos != uint32(i) || e.Place != x.Place || !bytes.Equal(e.Value, x.value) {
			return fmt.Errorf("entry %d is %v", i, e.Place)
		}
		if r.Alive(uint32(i)) != lives(i) {
			return fmt.Errorf("entry %d: alive is %v", i, r.Alive(uint32(i)))
		}
		pos, ok, err := r.FindID(x.ID)
		if err != nil {
			return err
		}
		if ok != lives(i) || ok && pos != uint32(i) {
			return fmt.Errorf("id %d of %d: %d, %v", x.ID, i, pos, ok)
		}
		if x.key == (Key{}) {
			continue
		}
		if pos, ok, err = r.FindKey(x.key); err != nil {
			return err
		}
		if ok != lives(i) || ok && pos != uint32(i) {
			return fmt.Errorf("key of %d: %d, %v", i, pos, ok)
		}
	}
	for _, back := range []bool{false, true} {
		if err := scanned(r.scan(0, r.Len(), back), all, alive, 0, len(all), back); err != nil {
			return err
		}
	}
	return nil
}

// scanned compares what a scan gives with those alive in [from, to).
func scanned(s *Scan, all []thing, alive []bool, from, to int, back bool) error {
	want := []int{}
	for i := from; i < to; i++ {
		if alive == nil || alive[i] {
			want = append(want, i)
		}
	}
	if back {
		slices.Reverse(want)
	}
	got := 0
	for ; s.Next(); got++ {
		e := s.Entry()
		if got >= len(want) || int(e.Pos) != want[got] || e.Place != all[e.Pos].Place || !bytes.Equal(e.Value, all[e.Pos].value) {
			return errors.Join(fmt.Errorf("scan from %d to %d, back %v: entry %d at %d", from, to, back, e.ID, e.Pos), s.Close())
		}
	}
	if err := cmp.Or(s.Err(), s.Close()); err != nil {
		return err
	}
	if got != len(want) {
		return fmt.Errorf("scan from %d to %d, back %v: %d entries, want %d", from, to, back, got, len(want))
	}
	return nil
}

// noise is bytes that cannot be packed.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// killRange deletes the entries in [from, to), and returns how many were alive.
func killRange(l interface{ Kill(pos uint32) bool }, from, to uint32) (n int) {
	for ; from < to; from++ {
		if l.Kill(from) {
			n++
		}
	}
	return n
}

// search is Search for one place; damage is an error.
func search(r *Table, p Place) (uint32, error) {
	at, damage, err := r.Search(p)
	if err = cmp.Or(err, damage); err != nil {
		return 0, err
	}
	return at[0], nil
}
