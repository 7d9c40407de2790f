package wal

import (
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestSpareOfTheKilled has a process die before the name of a segment is durable that it made or
// renamed: the next one, which takes it, keeps what it answers through a loss of power, also where no other
// segment has been made ready since.
func TestSpareOfTheKilled(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	var want []item
	for i := range 20 {
		want = append(want, add(t, l, byte(i), text(i, 8<<10)))
	}
	must(t, l.Close())
	var killed []*disktest.Disk
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.SyncDir {
			killed = append(killed, d.Kill())
		}
		return nil
	})
	l, _ = open(t, d, cfg, want[len(want)-1].end)
	for i := range 20 {
		add(t, l, byte(i), text(i, 8<<10))
	}
	must(t, l.Close())
	d.Hook(nil)
	if len(killed) == 0 {
		t.Fatal("no segment was made")
	}
	cfg.Still = true // so that others are made ready once the entry is durable
	for _, d := range killed {
		l, _ := open(t, d, cfg, want[len(want)-1].end)
		var after *disktest.Disk
		crash := func(c disktest.Call) error {
			if after == nil && c.Op == disktest.SyncDir {
				after = d.Crash(disktest.Nothing())
			}
			return nil
		}
		d.Hook(crash)
		added := add(t, l, 7, text(7, 100))
		must(t, crash(disktest.Call{Op: disktest.SyncDir}))
		d.Hook(nil)
		must(t, l.Close())
		l, all := open(t, after, cfg, want[len(want)-1].end)
		if len(all) == 0 || all[len(all)-1].end != added.end {
			t.Errorf("what was answered is gone: %d entries are left", len(all))
		}
		must(t, l.Close())
	}
}
