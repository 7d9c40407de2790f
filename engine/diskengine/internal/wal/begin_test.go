package wal

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestBegin: from then on there is a segment, which a loss of power leaves, and a log without one is
// damaged. What is appended comes behind.
func TestBegin(t *testing.T) {
	d, cfg := newDisk(t), small()
	begun := *cfg
	begun.Begun = true
	if _, _, _, err := tryOpen(d, &begun, 0); !errors.Is(err, ErrDamaged) {
		t.Fatalf("a log that was begun, and is not there: %v", err)
	}
	l, _ := open(t, d, cfg, 0)
	must(t, l.Begin())
	must(t, l.Begin())
	for name, after := range map[string]*disktest.Disk{"the power is lost": d.Crash(disktest.Nothing()), "the process is killed": d.Kill()} {
		l, found, all, err := tryOpen(after, &begun, 0)
		if err != nil || len(all) > 0 || found.Segments != 1 {
			t.Fatalf("%s: %+v, %v, %v", name, found, all, err)
		}
		must(t, l.Close())
	}
	want := []item{add(t, l, 1, text(1, 100))}
	must(t, l.Close())
	l, found, all, err := tryOpen(d, &begun, 0)
	must(t, err)
	if same(t, all, want); found.Torn != nil {
		t.Errorf("found %+v", found)
	}
	must(t, l.Close())

	names, err := d.List("/log")
	must(t, err)
	for _, name := range names {
		must(t, d.Remove(filepath.Join("/log", name)))
	}
	if _, _, _, err := tryOpen(d, &begun, 0); !errors.Is(err, ErrDamaged) {
		t.Errorf("all segments are gone: %v", err)
	}
	gaps := 0
	must(t, Salvage(d, nil, &begun, 0, func(Entry) error { return nil }, func(g Gap) error {
		if gaps++; g.To != Unknown {
			t.Errorf("the gap is %+v", g)
		}
		return nil
	}))
	if gaps != 1 {
		t.Errorf("%d gaps", gaps)
	}
}

// TestBeginAndClose: a log in which nothing was written was closed all the same.
func TestBeginAndClose(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	must(t, l.Begin())
	must(t, l.Close())
	l, found, _, err := tryOpen(d, cfg, 0)
	must(t, err)
	if found.Torn != nil || found.Segments != 1 {
		t.Errorf("found %+v", found)
	}
	must(t, l.Close())
}
