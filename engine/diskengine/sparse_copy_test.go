package diskengine_test

import (
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// A copy of a store has holes where space was only reserved, as cp and rsync -S and tar -S leave them: the ballast,
// and the segments of the log that are ahead, take space again.
func TestSparseCopy(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	p.cfg.BallastBytes, p.cfg.MinFreeBytes = 256<<10, -1
	e := p.open(t)
	pushKeys(t, e, "a")
	used := d.Used()
	must(t, e.Close())
	names, err := d.List("/data/log")
	must(t, err)
	for i := range names {
		names[i] = "/data/log/" + names[i]
	}
	hollow := 0
	for _, name := range append(names, "/data/BALLAST") {
		text := contentsOf(t, d, name)
		if text == "" || strings.Trim(text, "\x00") != "" {
			continue
		}
		hollow++
		must(t, d.Remove(name))
		f, err := d.Create(name)
		must(t, err)
		must(t, f.Close())
		d.Cut(name, int64(len(text)))
	}
	if hollow < 2 {
		t.Fatalf("%d files were only reserved", hollow)
	}
	e = p.open(t)
	pushKeys(t, e, "b")
	if now := d.Used(); now < used {
		t.Errorf("the store took %d bytes, and takes %d now", used, now)
	}
	must(t, e.Close())
}
