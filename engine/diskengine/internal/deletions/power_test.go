package deletions

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

// becomes says what became of a file that holds who is dead in some sstables; an error is what must
// not be.
func becomes(t *testing.T, d *vfstest.Disk, number uint64, want []*sstable.Table) (string, error) {
	tables := reopened(t, d, want)
	defer closed(t, tables)
	err := Restore(d, dir, number, store, tables)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing", nil
	case errors.Is(err, ErrDamaged):
		return "damaged", nil
	case err != nil:
		return "unreadable", err
	}
	for i := range want {
		if err := same(tables[i], want[i]); err != nil {
			return "another", err
		}
	}
	_, err = Verify(d, dir, number, store, nil)
	return "whole", err
}

// TestPowerLoss lets the power go before each call that changes the disk while deletion bitmaps are written
// and those before are swept, and leaves sets of what was not synced. A file that was written is
// whole; any other is missing, whole, or says that it is damaged.
func TestPowerLoss(t *testing.T) {
	for _, cfg := range []vfstest.Config{{Stale: true}, {Sector: 64, Stale: true}, {Sector: 4096}} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 2))
			d := newDisk(t, &cfg)
			// What is dead in each file is told by sstables of another disk, which do not change.
			held := map[uint64][]*sstable.Table{}
			models := newDisk(t, nil)
			numbers := []uint64{1, 2, 3}
			tables := []*sstable.Table{}
			for _, n := range numbers {
				tables = append(tables, newTable(t, d, n, 5000))
				newTable(t, models, n, 5000)
			}
			sure := map[uint64]bool{}
			losses, found, draws := 0, map[string]int{}, seed
			lose := func(at string) {
				draws++
				for _, chooser := range []vfstest.Chooser{vfstest.Seeded(draws), vfstest.Seeded(draws * 31), vfstest.Nothing(), vfstest.Everything(),
					vfstest.Only(int(draws % 40)), vfstest.AllBut(int(draws % 40))} {
					losses++
					after := d.Crash(chooser)
					for number, want := range held {
						what, err := becomes(t, after, number, want)
						found[what]++
						if err != nil || sure[number] && what != "whole" {
							t.Fatalf("seed %d: power lost at %s: deletion bitmaps %d, sure %v, are %s: %v", seed, at, number, sure[number], what, err)
						}
					}
					if err := Sweep(after, dir, func(n uint64) bool { return sure[n] }); err != nil {
						t.Fatal(err)
					}
				}
			}
			d.Hook(func(c vfstest.Call) error {
				if c.Changes() {
					lose(fmt.Sprintf("%+v", c))
				}
				return nil
			})
			for number := uint64(10); number < 14; number++ {
				want := reopened(t, models, tables)
				for i, r := range tables {
					kill(r, some(rng, rng.IntN(1500), 5000)...)
					for k := range r.Len() {
						if !r.Alive(k) {
							want[i].Kill(k)
						}
					}
				}
				held[number] = want
				_, err := Write(d, dir, number, store, tables, nil, nil)
				must(t, err)
				sure[number] = true
				lose("the end")
				delete(sure, number-1)
				must(t, Sweep(d, dir, func(n uint64) bool { return sure[n] }))
			}
			d.Hook(nil)
			for _, what := range []string{"missing", "whole", "damaged"} {
				if found[what] == 0 {
					t.Errorf("seed %d: no deletion bitmaps were %s", seed, what)
				}
			}
			t.Logf("%d losses: %v", losses, found)
		})
	}
}

// TestFaults lets each call fail in turn, in several ways, while deletion bitmaps are written: then there is
// an error, nothing is open, and no half file is there unless removing failed too; and another
// one can be written. What was written is durable.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]error{
		"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EMFILE": syscall.EMFILE, "short": &vfstest.Short{Bytes: 20, Err: syscall.EIO},
	} {
		for _, lasting := range []bool{false, true} {
			ops := map[string]int{}
			for at := int64(1); ; at++ {
				d := newDisk(t, nil)
				tables := []*sstable.Table{newTable(t, d, 1, 40, 3, 5), newTable(t, d, 2, 10)}
				start, hit, removed := d.Calls(), false, true
				d.Hook(func(c vfstest.Call) error {
					if c.N == start+at || hit && lasting {
						hit = true
						ops[c.Op]++
						removed = removed && c.Op != vfstest.Remove
						return fault
					}
					return nil
				})
				_, err := Write(d, dir, 9, store, tables, nil, nil)
				d.Hook(nil)
				if hit != (err != nil) || hit && !errors.Is(err, fault) && !errors.Is(err, errors.Unwrap(fault)) || d.Handles() != len(tables) {
					t.Fatalf("%s, lasting %v, call %d: %v, %d files are open", name, lasting, at, err, d.Handles())
				}
				names, listed := d.List(dir)
				must(t, listed)
				if err != nil && removed && len(names) != len(tables) {
					t.Fatalf("%s, lasting %v, call %d: left behind %v", name, lasting, at, names)
				}
				must(t, Sweep(d, dir, func(uint64) bool { return err == nil }))
				if err != nil {
					_, err := Write(d, dir, 9, store, tables, nil, nil)
					must(t, err)
				}
				if what, err := becomes(t, d.Crash(vfstest.Nothing()), 9, tables); what != "whole" && !hit || err != nil {
					t.Fatalf("%s, lasting %v, call %d: %s, %v", name, lasting, at, what, err)
				}
				closed(t, tables)
				if !hit {
					break
				}
			}
			for _, op := range []string{vfstest.Create, vfstest.Write, vfstest.Sync, vfstest.SyncDir, vfstest.Close} {
				if ops[op] == 0 {
					t.Errorf("%s, lasting %v: no %s failed", name, lasting, op)
				}
			}
		}
	}
}

// TestReadErrorIsNoDamage lets each call fail in turn while deletion bitmaps are read.
func TestReadErrorIsNoDamage(t *testing.T) {
	d := newDisk(t, nil)
	tables := []*sstable.Table{newTable(t, d, 1, 40, 3, 5), newTable(t, d, 2, 10)}
	_, err := Write(d, dir, 9, store, tables, nil, nil)
	must(t, err)
	for at := int64(1); ; at++ {
		again := reopened(t, d, tables)
		start, hit := d.Calls(), false
		d.Hook(func(c vfstest.Call) error {
			if hit = hit || c.N == start+at; c.N == start+at {
				return errTest
			}
			return nil
		})
		err := Restore(d, dir, 9, store, again)
		if err == nil {
			_, err = Verify(d, dir, 9, store, nil)
		}
		d.Hook(nil)
		if hit != errors.Is(err, errTest) || !hit && err != nil || errors.Is(err, ErrDamaged) || d.Handles() != 2*len(tables) {
			t.Fatalf("call %d: %v, %d files are open", at, err, d.Handles())
		}
		closed(t, again)
		if !hit {
			break
		}
	}
	closed(t, tables)
}
