package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// found returns which state of the history a disk holds, after the manifest was opened there,
// written once more, and the power lost again.
func found(d *disktest.Disk) (int, error) {
	m, err := Open(d, "/store")
	if err != nil {
		return 0, err
	}
	n := len(m.State().Tables)
	if !reflect.DeepEqual(m.State(), state(n)) {
		return 0, fmt.Errorf("found %+v", m.State())
	}
	if at, err := Read(d.Crash(disktest.Nothing()), "/store"); err != nil || len(at.Tables) != n {
		return 0, fmt.Errorf("opened with %d sstables, and after another loss of power with %d: %v", n, len(at.Tables), err)
	}
	if err := m.Write(state(n + 1)); err != nil {
		return 0, err
	}
	if at, err := Read(d.Crash(disktest.Nothing()), "/store"); err != nil || len(at.Tables) != n+1 {
		return 0, fmt.Errorf("written with %d sstables, read with %d: %v", n+1, len(at.Tables), err)
	}
	return n, nil
}

// TestPowerLoss lets the power go before and after each call of a history, and leaves all that a
// crash can leave: the manifest is the last one that was written, or the one being written.
func TestPowerLoss(t *testing.T) {
	for _, cfg := range []disktest.Config{{Sector: sector, Stale: true}, {Sector: 2 * sector}} {
		d := newDisk(t, &cfg)
		m, err := Create(d, "/store", state(0))
		must(t, err)
		done, losses, seen := 0, 0, map[int]int{}
		lose := func(at string) {
			for chooser := range disktest.Every() {
				n, err := found(d.Crash(chooser))
				if err != nil || n != done && n != done+1 {
					t.Fatalf("power lost at %s, after manifest %d: found %d, %v", at, done, n, err)
				}
				losses++
				seen[n-done]++
			}
			if n, err := found(d.Kill()); err != nil || n != done && n != done+1 {
				t.Fatalf("killed at %s, after manifest %d: found %d, %v", at, done, n, err)
			}
		}
		d.Hook(func(c disktest.Call) error { lose(fmt.Sprintf("%+v", c)); return nil })
		for done < 4 {
			must(t, m.Write(state(done+1)))
			done++
			lose("the end")
		}
		if losses < 50 || seen[0] == 0 || seen[1] == 0 {
			t.Errorf("%d losses, which left %v", losses, seen)
		}
	}
}

// TestFaults lets each call fail, in several ways: the manifest before counts and the next write
// succeeds, or it has failed, and opening finds one of the two.
func TestFaults(t *testing.T) {
	failed, went := 0, 0
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE, &disktest.Short{Bytes: 10, Err: syscall.EIO}} {
		for k := 0; ; k++ {
			d := newDisk(t, nil)
			m, err := Create(d, "/store", state(1))
			must(t, err)
			calls := 0
			d.Hook(func(c disktest.Call) error {
				if calls++; calls == k+1 {
					return fault
				}
				return nil
			})
			err = m.Write(state(2))
			d.Hook(nil)
			if calls <= k {
				must(t, err)
				break
			}
			want := []int{2}
			switch {
			case errors.Is(err, ErrFailed):
				failed++
				want = []int{1, 2}
				if err := m.Write(state(3)); !errors.Is(err, ErrFailed) {
					t.Fatalf("fault %v at call %d: a failed manifest is written: %v", fault, k, err)
				}
			case err != nil:
				went++
				if !errors.Is(err, fault) && !errors.Is(err, syscall.EIO) {
					t.Fatalf("fault %v at call %d: %v", fault, k, err)
				}
				if got, err := Read(d, "/store"); err != nil || len(got.Tables) != 1 || len(m.State().Tables) != 1 {
					t.Fatalf("fault %v at call %d: the one before does not count: %+v, %v", fault, k, got, err)
				}
				must(t, m.Write(state(2)))
			}
			for _, after := range []*disktest.Disk{d.Crash(disktest.Nothing()), d.Crash(disktest.Everything()), d.Kill()} {
				if n, err := found(after); err != nil || n != want[0] && n != want[len(want)-1] {
					t.Fatalf("fault %v at call %d: found %d, want %v: %v", fault, k, n, want, err)
				}
			}
			if d.Handles() != 0 {
				t.Fatalf("fault %v at call %d: %d files are open", fault, k, d.Handles())
			}
		}
	}
	if failed == 0 || went == 0 {
		t.Errorf("%d faults failed the manifest, %d did not", failed, went)
	}
}

// TestFullDisk: a write that finds no space leaves the manifest as it was, and it can be opened.
func TestFullDisk(t *testing.T) {
	d := newDisk(t, nil)
	m, err := Create(d, "/store", state(1))
	must(t, err)
	d.SetSpace(d.Used())
	if err := m.Write(state(2)); !vfs.IsFull(err) || errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	again, err := Open(d, "/store")
	must(t, err)
	if len(again.State().Tables) != 1 {
		t.Errorf("found %+v", again.State())
	}
	d.SetSpace(0)
	must(t, m.Write(state(2)))
}

// TestRenameWithoutSpace: where the disk is too full for the new manifest to take the place of the one before,
// that counts, and the next write succeeds; unless the rename was carried out after all.
func TestRenameWithoutSpace(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		for _, late := range []bool{false, true} {
			d := newDisk(t, nil)
			m, err := Create(d, "/store", state(1))
			must(t, err)
			d.Hook(func(c disktest.Call) error {
				if c.Op != disktest.Rename {
					return nil
				}
				d.Hook(nil)
				if late {
					must(t, d.Rename("/store/"+NewName, c.Name))
				}
				return full
			})
			err = m.Write(state(2))
			if !errors.Is(err, full) || errors.Is(err, ErrFailed) != late {
				t.Errorf("%v, late %v: %v", full, late, err)
			}
			want := 1
			if late {
				want = 2
			}
			if n, err := found(d.Crash(disktest.Everything())); err != nil || n != want {
				t.Errorf("%v, late %v: found %d, %v", full, late, n, err)
			}
			if late {
				continue
			}
			must(t, m.Write(state(3)))
			if n, err := found(d.Crash(disktest.Nothing())); err != nil || n != 3 {
				t.Errorf("%v: found %d afterwards, %v", full, n, err)
			}
		}
	}
}
