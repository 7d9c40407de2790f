package sstable

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestPowerLoss lets the power go before each call that changes the disk while an sstable is
// written, two are merged and one is removed, and leaves sets of what was not synced. An sstable
// that was finished is whole; any other is missing, whole, or says that it is damaged.
func TestPowerLoss(t *testing.T) {
	for _, dc := range []disktest.Config{{Stale: true}, {Sector: 4096}} {
		t.Run(fmt.Sprintf("%+v", dc), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			d, cfg := disktest.New(&dc), small()
			must(t, d.Mkdir("/runs"))
			must(t, d.SyncDir("/"))
			rng := rand.New(rand.NewPCG(seed, 5))
			lists := map[uint64][]thing{1: things(rng, 120), 2: things(rng, 60)}
			for i := range lists[2] {
				lists[2][i].ID++ // others than in the first
			}
			lists[3] = append(append([]thing{}, lists[1]...), lists[2]...)
			order(lists[3])
			sure := map[uint64]bool{}
			losses, found := 0, map[string]int{}
			draws := seed
			d.Hook(func(c disktest.Call) error {
				if !c.Changes() {
					return nil
				}
				draws++
				for _, chooser := range []disktest.Chooser{disktest.Seeded(draws), [...]disktest.Chooser{disktest.Nothing(),
					disktest.Everything(), disktest.Only(int(draws % 40)), disktest.AllBut(int(draws % 40))}[draws%4]} {
					losses++
					after := d.Crash(chooser)
					for number, all := range lists {
						what, err := becomes(after, cfg, number, all)
						found[what]++
						if sure[number] && what != "whole" || err != nil {
							t.Fatalf("seed %d: power lost before %+v: sstable %d, sure %v, is %s: %v", seed, c, number, sure[number], what, err)
						}
					}
					must(t, Sweep(after, "/runs", func(number uint64) bool { return sure[number] }))
				}
				return nil
			})
			one := written(t, d, 1, cfg, lists[1])
			sure[1] = true
			two := written(t, d, 2, cfg, lists[2])
			sure[2] = true
			m, err := Merge(d, "/runs", 3, cfg, []*Table{one, two})
			must(t, err)
			sure[3] = true
			delete(sure, 1)
			must(t, one.Remove())
			must(t, d.SyncDir("/runs"))
			d.Hook(nil)
			must(t, errors.Join(two.Close(), m.Run.Close()))
			for _, what := range []string{"missing", "whole", "damaged"} {
				if found[what] == 0 {
					t.Errorf("seed %d: no sstable was %s", seed, what)
				}
			}
			t.Logf("%d losses: %v", losses, found)
		})
	}
}

// becomes says what became of an sstable; an error is what must not be.
func becomes(d *disktest.Disk, cfg *Config, number uint64, all []thing) (string, error) {
	r, err := Open(d, "/runs", number, cfg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing", nil
	case errors.Is(err, ErrDamaged):
		return "damaged", nil
	case err != nil:
		return "unreadable", err
	}
	defer r.Close()
	if err = r.Verify(nil); err == nil {
		if int(r.Len()) != len(all) {
			return "another", fmt.Errorf("%d entries, want %d", r.Len(), len(all))
		}
		return "whole", scanned(r.Scan(0, r.Len()), all, nil, 0, len(all), false)
	}
	if !errors.Is(err, ErrDamaged) {
		return "unreadable", err
	}
	s := r.Scan(0, r.Len())
	defer s.Close()
	for s.Next() {
		if e := s.Entry(); e.Place != all[e.Pos].Place {
			return "another", fmt.Errorf("entry %d is %v", e.Pos, e.Place)
		}
	}
	return "damaged", nil
}

// TestFaults lets each call fail in turn, in several ways, while an sstable is written. Either it
// is finished and whole, also after a loss of power, or there is an error and nothing is open;
// and another one can be written then.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]error{
		"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EMFILE": syscall.EMFILE, "short": &disktest.Short{Bytes: 700, Err: syscall.EIO},
	} {
		for _, lasting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s lasting %v", name, lasting), func(t *testing.T) {
				t.Parallel()
				all := things(rand.New(rand.NewPCG(7, 7)), 150)
				ops := map[string]int{}
				for at := int64(1); ; at++ {
					d, cfg := newDisk(t), small()
					start, hit := d.Calls(), false
					d.Hook(func(c disktest.Call) error {
						if c.N == start+at {
							hit = true
							ops[c.Op]++
							return fault
						}
						if hit && lasting {
							return fault
						}
						return nil
					})
					r, err := write(d, 1, cfg, all)
					d.Hook(nil)
					if r != nil {
						if err := whole(r, all, nil); err != nil {
							t.Fatalf("call %d: %v", at, err)
						}
						must(t, r.Close())
						after, err := Open(d.Crash(disktest.Nothing()), "/runs", 1, cfg)
						must(t, err)
						must(t, whole(after, all, nil))
						must(t, after.Close())
					}
					if hit && !errors.Is(err, errors.Unwrap(fault)) && !errors.Is(err, fault) || !hit && err != nil || d.Handles() > 0 {
						t.Fatalf("call %d: %v, %d files are open", at, err, d.Handles())
					}
					if !hit {
						break
					}
					must(t, Sweep(d, "/runs", func(uint64) bool { return false }))
					must(t, written(t, d, 1, cfg, all).Close())
				}
				for _, op := range []string{disktest.Create, disktest.Write, disktest.Sync, disktest.SyncDir, disktest.Close, disktest.Open, disktest.Read} {
					if ops[op] == 0 {
						t.Errorf("no %s failed", op)
					}
				}
			})
		}
	}
}

// TestReadErrorIsNoDamage lets each call fail in turn while an sstable is opened and read.
func TestReadErrorIsNoDamage(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(8, 8)), 20)
	must(t, written(t, d, 1, cfg, all).Close())
	for at := int64(1); ; at++ {
		d, hit := d.Kill(), false
		d.Hook(func(c disktest.Call) error {
			if c.N == at {
				hit = true
				return errTest
			}
			return nil
		})
		r, err := Open(d, "/runs", 1, cfg)
		if err == nil {
			err = errors.Join(same(r, all, nil), r.Verify(nil), r.Close())
		}
		if hit != (err != nil) || hit && (!errors.Is(err, errTest) || errors.Is(err, ErrDamaged)) || d.Handles() > 0 && at != d.Calls() {
			t.Fatalf("call %d: %v, %d files are open", at, err, d.Handles())
		}
		if !hit {
			return
		}
	}
}
