package wal

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// read reads a log, which must change nothing.
func read(t *testing.T, d *disktest.Disk, cfg *Config, from Pos) (all []item, found Found, err error) {
	t.Helper()
	d.Hook(func(c disktest.Call) error {
		if c.Changes() {
			t.Errorf("reading changes something: %+v", c)
		}
		return nil
	})
	found, err = Read(d, "/log", cfg, from, func(e Entry) error {
		all = append(all, item{e.Kind, bytes.Clone(e.Bytes), e.Start, e.End})
		return nil
	})
	d.Hook(nil)
	if d.Handles() != 0 {
		t.Errorf("%d files are open", d.Handles())
	}
	return all, found, err
}

// TestRead: a log is read as it is opened, sound, torn and damaged.
func TestRead(t *testing.T) {
	d, cfg, items, from, used := written(t)
	all, found, err := read(t, d, cfg, from)
	must(t, err)
	same(t, all, items)
	if found.Torn != nil || found.Entries != int64(len(items)) || found.End != items[len(items)-1].end {
		t.Errorf("found %+v", found)
	}
	names := slices.Sorted(maps.Keys(used))
	damaged := 0
	for range 150 {
		name := names[rand.IntN(len(names))]
		spoiled := d.Kill()
		if off := rand.Int64N(min(used[name]+2*frameSize, minSegment)); rand.IntN(8) > 0 {
			spoiled.Flip(name, off, 1<<rand.IntN(8))
		} else {
			must(t, spoiled.Remove(name))
		}
		all, found, err := read(t, spoiled, cfg, from)
		_, opened, want, oerr := closing(tryOpen(spoiled, cfg, from))
		if err != nil && oerr != nil {
			damaged++
			if strings.TrimPrefix(err.Error(), "read") != strings.TrimPrefix(oerr.Error(), "open") || !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: read: %v, opened: %v", name, err, oerr)
			}
			continue
		}
		if err != nil || oerr != nil || found.End != opened.End || (found.Torn == nil) != (opened.Torn == nil) {
			t.Errorf("%s: read: %v, %+v, opened: %v, %+v", name, err, found, oerr, opened)
		}
		same(t, all, want)
	}
	if damaged == 0 {
		t.Error("nothing was damaged")
	}
	stop := func(Entry) error { return errTest }
	if _, err := Read(d, "/log", cfg, from, stop); !errors.Is(err, errTest) || d.Handles() != 0 {
		t.Errorf("an error of who reads: %v, %d files are open", err, d.Handles())
	}
}
