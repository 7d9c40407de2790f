package wal

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// An entry that was written beside a sync, and whose own sync then failed, is seen by the next process, which
// writes it again before anything rests on it: then the power goes.
func TestFailedSyncOfWhatWasWrittenAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		l, _ := open(t, d, cfg, 0)
		want := []item{add(t, l, 1, text(1, 1000))}
		synctest.Wait()
		gate := make(chan struct{})
		var syncs atomic.Int64
		d.Hook(func(c disktest.Call) error {
			if c.Op != disktest.Sync {
				return nil
			}
			if syncs.Add(1) == 1 {
				<-gate
				return nil
			}
			return syscall.EIO
		})
		x, err := put(l, 2, text(2, 1000)) // its sync waits at the gate
		must(t, err)
		go func() { _ = l.Wait(t.Context(), x.end) }()
		synctest.Wait()
		y, err := put(l, 3, text(3, 3000))
		must(t, err)
		must(t, l.WaitWritten(t.Context(), y.end)) // beside it
		z, err := put(l, 4, text(4, 1000))
		must(t, err)
		close(gate)
		if err := l.Wait(t.Context(), z.end); err == nil {
			t.Fatal("no error")
		}
		must(t, l.Wait(t.Context(), x.end))
		d.Hook(nil)
		left := d.Kill() // another process finds all of it
		_ = l.Close()
		want = append(want, x, y, z)
		l, all := open(t, left, cfg, 0)
		same(t, all, want)
		w := add(t, l, 5, text(5, 1000)) // durable, and so is all before
		after := left.Crash(disktest.Nothing())
		must(t, l.Close())
		l, all = open(t, after, cfg, 0)
		same(t, all, append(want, w))
		must(t, l.Close())
	})
}

// Many append, some waiting for the write alone, until a sync fails. What the next process was given is
// there when the power has gone after that.
func TestAheadAndFailedSyncs(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			d := disktest.New(&disktest.Config{Dropped: disktest.Seeded(rng.Uint64()), Forgets: rng.IntN(4) == 0, Stale: rng.IntN(2) == 0})
			must(t, vfs.MkdirAll(d, "/log"))
			cfg := small()
			l, _ := open(t, d, cfg, 0)
			var mu sync.Mutex
			n := 3 + rng.IntN(40)
			d.Hook(func(c disktest.Call) error {
				if c.Op != disktest.Sync {
					return nil
				}
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if n--; n < 0 {
					return syscall.EIO
				}
				return nil
			})
			var group sync.WaitGroup
			for g := range 6 {
				r := rand.New(rand.NewPCG(seed, uint64(g)+100))
				group.Go(func() {
					for k := range 200 {
						time.Sleep(time.Duration(r.IntN(1500)) * time.Microsecond)
						i, err := put(l, byte(g), text(g<<16|k, 8*(1+r.IntN(300))))
						if err != nil {
							return
						}
						switch r.IntN(3) {
						case 0:
							err = l.Wait(t.Context(), i.end)
						case 1:
							err = l.WaitWritten(t.Context(), i.end)
						}
						if err != nil {
							return
						}
					}
				})
			}
			group.Wait()
			d.Hook(nil)
			left := d.Kill()
			_ = l.Close()
			l, all := open(t, left, cfg, 0)
			w := add(t, l, 9, text(9, 100))
			after := left.Crash(disktest.Seeded(rng.Uint64()))
			must(t, l.Close())
			l, _, again, err := tryOpen(after, cfg, 0)
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
			same(t, again, append(all, w))
			must(t, l.Close())
		})
	}
}
