package diskengine

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMigrate takes a made-up older directory to a made-up newer format, with a
// step that fails the first time.
func TestMigrate(t *testing.T) {
	d, err := openDirectory(vfs.NewMem(), "data", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer d.unlock()
	var ran []int
	broken := errors.New("broken")
	fail := broken
	steps := map[int]migration{
		1: func(d *directory) error { ran = append(ran, 1); return d.write("one", "1") },
		2: func(*directory) error { ran = append(ran, 2); return fail },
	}
	marker := func() string {
		text, err := d.readFile(markerName)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if err := d.migrate(1, steps, 3); !errors.Is(err, broken) || marker() != markerText(2) {
		t.Fatalf("%v, marker %q", err, marker())
	}
	fail = nil
	if err := d.migrate(2, steps, 3); err != nil || marker() != markerText(3) {
		t.Fatalf("%v, marker %q", err, marker())
	}
	if len(ran) != 3 {
		t.Errorf("ran %v", ran)
	}
	if _, err := d.readMarker(); err == nil {
		t.Error("a newer format was accepted")
	}
	if err := d.migrate(-5, steps, 3); err == nil {
		t.Error("a format without a step was migrated")
	}
}
