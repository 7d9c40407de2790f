package manifest

import (
	"errors"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestPrepare lets the power go before each call that changes the disk while a store is made: the directory
// is empty, or says that it is no store yet, until it is whole.
func TestPrepare(t *testing.T) {
	d, crashes, whole := newDisk(t, nil), 0, 0
	d.Hook(func(c disktest.Call) error {
		if !c.Changes() {
			return nil
		}
		for _, chooser := range []disktest.Chooser{disktest.Nothing(), disktest.Everything(), disktest.Seeded(uint64(c.N))} {
			after := d.Crash(chooser)
			names, err := after.List("/made")
			if err != nil || len(names) == 0 || slices.Contains(names, Restoring) {
				crashes++
				continue
			}
			whole++
			if _, err := Read(after, "/made"); err != nil || !slices.Contains(names, LogName) || !slices.Contains(names, TablesName) {
				t.Errorf("before %+v: %v, %v", c, names, err)
			}
		}
		return nil
	})
	must(t, Prepare(d, "/made"))
	must(t, Complete(d, "/made", state(2)))
	d.Hook(nil)
	if names, err := d.Crash(disktest.Nothing()).List("/made"); err != nil || slices.Contains(names, Restoring) || !slices.Contains(names, Name) {
		t.Errorf("at last %v, %v", names, err)
	}
	if crashes < 10 || whole == 0 {
		t.Errorf("%d crashes, after %d of which it was whole", crashes, whole)
	}
	if err := Prepare(d, "/made"); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
}
