package manifest

import (
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
)

// TestRepairNote: a repair has begun until a manifest is opened or put in force, durably; one whose note
// was cut off has not.
func TestRepairNote(t *testing.T) {
	from := func(d *disktest.Disk, want uint64) {
		t.Helper()
		if got, err := RepairFrom(d, "/store"); got != want || err != nil {
			t.Fatalf("from %d, want %d: %v", got, want, err)
		}
	}
	d := newDisk(t, nil)
	from(d, 0)
	must(t, BeginRepair(d, "/store", 1<<63+5))
	d.Hook(func(c disktest.Call) error {
		for chooser := range disktest.Every() {
			if got, err := RepairFrom(d.Crash(chooser), "/store"); got != 0 && got != 7 && got != 1<<63+5 || err != nil {
				t.Fatalf("power lost before %+v: from %d: %v", c, got, err)
			}
		}
		return nil
	})
	must(t, BeginRepair(d, "/store", 7))
	d.Hook(nil)
	from(d.Crash(disktest.Nothing()), 7)

	replaced := d.Kill()
	must(t, Replace(replaced, "/store", state(1)))
	from(replaced.Crash(disktest.Nothing()), 0)

	opened := replaced.Kill()
	must(t, BeginRepair(opened, "/store", 7))
	_, err := Open(opened, "/store")
	must(t, err)
	from(opened.Crash(disktest.Nothing()), 0)
}
