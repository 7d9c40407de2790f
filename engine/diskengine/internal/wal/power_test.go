package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestPowerLoss lets the power go before each call that changes the disk, in histories with
// full segments, releases and openings, and each time leaves many sets of what was not
// synced.
func TestPowerLoss(t *testing.T) {
	for _, cfg := range []disktest.Config{{Stale: true}, {Sector: 4096}} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			synctest.Test(t, func(t *testing.T) { losePower(t, &cfg, seed) })
		})
	}
}

func losePower(t *testing.T, dc *disktest.Config, seed uint64) {
	d, cfg := disktest.New(dc), small()
	must(t, vfs.MkdirAll(d, "/log"))
	h, rng := new(history), rand.New(rand.NewPCG(seed, 1))
	type loss struct {
		call       disktest.Call
		after      *disktest.Disk
		chooser    string
		may        []item
		from, must Pos
	}
	var mu sync.Mutex
	var losses []loss
	ops := map[string]int{}
	draws := seed
	record := func(c disktest.Call) error {
		if !c.Changes() {
			return nil
		}
		if c.Op == disktest.Sync {
			defer time.Sleep(time.Millisecond) // others go on beside it
		}
		mu.Lock()
		defer mu.Unlock()
		ops[c.Op]++
		may, from, must := h.promised()
		draws++
		at := int(draws % 5)
		choosers := map[string]disktest.Chooser{"seeded": disktest.Seeded(draws)}
		switch draws % 4 {
		case 0:
			choosers["nothing"] = disktest.Nothing()
		case 1:
			choosers["everything"] = disktest.Everything()
		case 2:
			choosers["only"] = disktest.Only(at)
		case 3:
			choosers["all but"] = disktest.AllBut(at)
		}
		for name, chooser := range choosers {
			losses = append(losses, loss{c, d.Crash(chooser), name, may, from, must})
		}
		return nil
	}
	d.Hook(record)
	for range disktest.Thorough(3, 6) {
		may, from, sure := h.promised()
		l, found, err := verify(d, cfg, may, from, sure)
		must(t, err)
		h.reopened(found.End)
		must(t, h.run(t, l, rng, 12))
		must(t, l.Close())
	}
	d.Hook(nil)
	for i, loss := range losses {
		if err := goesOn(t, loss.after, cfg, loss.may, loss.from, loss.must, uint64(i)); err != nil {
			t.Fatalf("seed %d: power lost before call %+v, left %s: %v", seed, loss.call, loss.chooser, err)
		}
	}
	for _, op := range []string{disktest.Create, disktest.Write, disktest.Sync, disktest.SyncDir, disktest.Preallocate} {
		if ops[op] == 0 {
			t.Errorf("seed %d: no %s", seed, op)
		}
	}
	t.Logf("seed %d: %d losses at %v", seed, len(losses), ops)
}

// TestEveryTornWrite goes through all sets of sectors of a last write that can be left.
func TestEveryTornWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		l, _ := open(t, d, cfg, 0)
		h := new(history)
		must(t, errors.Join(h.put(l, 700), h.wait(t, l)))
		synctest.Wait() // for the next segment
		_, from, sure := h.promised()
		sets := 0
		d.Hook(func(c disktest.Call) error {
			if c.Op != disktest.Sync {
				return nil
			}
			may, _, _ := h.promised()
			for chooser := range disktest.Every() {
				if err := goesOn(t, d.Crash(chooser), cfg, may, from, sure, uint64(sets)); err != nil {
					t.Errorf("set %d: %v", sets, err)
				}
				sets++
			}
			return nil
		})
		must(t, errors.Join(h.put(l, 1300), h.wait(t, l)))
		d.Hook(nil)
		must(t, l.Close())
		if sets != 1<<4 {
			t.Errorf("%d sets of sectors", sets)
		}
	})
}

// TestFaults lets each call of a history fail in turn, in several ways. The log goes on, or
// stops with an error and holds all that it promised when it is opened again, and also when the
// power goes then.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]error{
		"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EMFILE": syscall.EMFILE, "short": &disktest.Short{Bytes: 1000, Err: syscall.EIO},
	} {
		for _, lasting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s lasting %v", name, lasting), func(t *testing.T) {
				t.Parallel()
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) {
					step := int64(6)
					if disktest.Thorough(1, 2) > 1 {
						step = 1
					}
					stopped, went := 0, 0
					for at := 1 + int64(seed%uint64(step)); ; at += step {
						reached, stops := failAt(t, seed, at, fault, lasting)
						if !reached {
							break
						}
						if stops {
							stopped++
						} else {
							went++
						}
					}
					t.Logf("seed %d: stopped at %d faults, went on after %d", seed, stopped, went)
					if stopped == 0 {
						t.Error("no fault stopped it")
					}
				})
			})
		}
	}
}

func failAt(t *testing.T, seed uint64, at int64, fault error, lasting bool) (reached, stopped bool) {
	d := disktest.New(&disktest.Config{Forgets: seed%2 == 0})
	must(t, vfs.MkdirAll(d, "/log"))
	cfg, h, rng := small(), new(history), rand.New(rand.NewPCG(seed, 2))
	first := d.Calls()
	d.Hook(func(c disktest.Call) error {
		n := c.N - first
		if n == at || n > at && lasting {
			return fault
		}
		return nil
	})
	var err error
	for round := 0; round < 2 && err == nil; round++ {
		may, from, must := h.promised()
		var l *Log
		var found Found
		if l, found, err = verify(d, cfg, may, from, must); err != nil {
			break
		}
		h.reopened(found.End)
		if err = h.run(t, l, rng, 8); err != nil && !errors.Is(err, ErrStopped) {
			t.Fatalf("seed %d, fault %d: %v", seed, at, err)
		}
		if cerr := l.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil && !errors.Is(err, fault) && !errors.Is(err, errors.Unwrap(fault)) {
		t.Fatalf("seed %d, fault %d: %v", seed, at, err)
	}
	if n := d.Handles(); n != 0 && err == nil {
		t.Fatalf("seed %d, fault %d: %d files are open", seed, at, n)
	}
	d.Hook(nil)
	may, from, sure := h.promised()
	killed := d.Kill()
	l, found, err2 := verify(killed, cfg, may, from, sure)
	if err2 != nil {
		t.Fatalf("seed %d, fault %d, %v: opened again: %v", seed, at, err, err2)
	}
	// What was given out when it was opened is durable.
	powerless := killed.Crash(disktest.Nothing())
	must(t, l.Close())
	for _, d := range []*disktest.Disk{powerless, d.Crash(disktest.Seeded(seed + uint64(at)))} {
		must := sure
		if d == powerless {
			must = found.End
		}
		if err2 := goesOn(t, d, cfg, may, from, must, seed); err2 != nil {
			t.Fatalf("seed %d, fault %d, %v: after a loss of power: %v", seed, at, err, err2)
		}
	}
	return d.Calls()-first >= at, err != nil
}

// TestSimulation lets a log live for months of random histories with closes, kills, losses of
// power, faults and slow disks.
func TestSimulation(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		start, rng := time.Now(), rand.New(rand.NewPCG(seed, 3))
		d, cfg := disktest.New(&disktest.Config{Stale: true, Forgets: seed%2 == 0}), small()
		must(t, vfs.MkdirAll(d, "/log"))
		h := new(history)
		fate := map[string]int{}
		for range disktest.Thorough(60, 50) {
			may, from, sure := h.promised()
			l, found, err := verify(d, cfg, may, from, sure)
			if err != nil {
				t.Fatalf("seed %d: after %v: %v", seed, fate, err)
			}
			h.reopened(found.End)
			failing := int64(1 << 62)
			if rng.IntN(3) == 0 {
				failing = d.Calls() + 1 + rng.Int64N(100)
			}
			slow := time.Duration(rng.IntN(3)) * time.Millisecond
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Sync {
					time.Sleep(slow)
				}
				if c.N == failing {
					return []error{syscall.EIO, syscall.ENOSPC, &disktest.Short{Bytes: int(c.N) * 64 % 9000, Err: syscall.EIO}}[c.N%3]
				}
				return nil
			})
			if err := h.run(t, l, rng, 1+rng.IntN(30)); err != nil && !errors.Is(err, ErrStopped) {
				t.Fatalf("seed %d: after %v: %v", seed, fate, err)
			}
			time.Sleep(time.Duration(rng.IntN(48)) * time.Hour)
			next := d
			switch rng.IntN(4) {
			case 0:
				fate["killed"]++
				next = d.Kill()
			case 1, 2:
				fate["powerless"]++
				next = d.Crash(disktest.Seeded(rng.Uint64()))
			default:
				fate["closed"]++
			}
			if err := l.Close(); err != nil {
				fate["stopped"]++
			}
			d.Hook(nil)
			d = next
		}
		t.Logf("seed %d: %v, %d entries in %.0f days", seed, fate, h.counter, time.Since(start).Hours()/24)
	})
}
