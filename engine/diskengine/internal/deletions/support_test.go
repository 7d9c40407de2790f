package deletions

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

const (
	dir   = "/store"
	store = 7
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

func newDisk(t failer, cfg *vfstest.Config) *vfstest.Disk {
	d := vfstest.New(cfg)
	must(t, vfs.MkdirAll(d, dir))
	return d
}

func config() *sstable.Config {
	return &sstable.Config{ID: store, Salt: func() uint64 { return 99 }}
}

// newTable writes an sstable of n entries, opens it, and kills some.
func newTable(t failer, fs vfs.FS, number uint64, n int, dead ...int) *sstable.Table {
	t.Helper()
	w, err := sstable.Create(fs, dir, number, config())
	must(t, err)
	for i := range n {
		must(t, w.Add(sstable.Place{Queue: 1, ID: uint64(i) + 1}, sstable.Key{}, nil))
	}
	r, err := w.Finish()
	must(t, err)
	kill(r, dead...)
	return r
}

func kill(r *sstable.Table, dead ...int) {
	for _, i := range dead {
		r.Kill(uint32(i))
	}
}

// some are n positions below a bound.
func some(rng *rand.Rand, n, bound int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = rng.IntN(bound)
	}
	return all
}

// reopened opens sstables once more, in which all are alive.
func reopened(t failer, fs vfs.FS, tables []*sstable.Table) []*sstable.Table {
	t.Helper()
	again := make([]*sstable.Table, len(tables))
	for i, r := range tables {
		var err error
		again[i], err = sstable.Open(fs, dir, r.Number(), config())
		must(t, err)
	}
	return again
}

func closed(t failer, tables []*sstable.Table) {
	t.Helper()
	for _, r := range tables {
		must(t, r.Close())
	}
}

// same compares who is alive in two sstables.
func same(got, want *sstable.Table) error {
	for i := range want.Len() {
		if got.Alive(i) != want.Alive(i) {
			return fmt.Errorf("sstable %d, entry %d: alive is %v", want.Number(), i, got.Alive(i))
		}
	}
	return nil
}

// written returns the bytes of a file.
func written(t failer, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	return b
}

// rewrite puts a file of the bytes in place of one that may be there.
func rewrite(t failer, fs vfs.FS, name string, b []byte) {
	t.Helper()
	_ = fs.Remove(name)
	f, err := fs.Create(name)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, errors.Join(err, f.Close()))
}
