package check

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// TestAsideStaysAsItWas has a rescue fail once the files are aside, and the log go on in the store, which is
// what it was: the files aside do not change with it. What a rescue leaves that did not put the store in
// force is no part of it.
func TestAsideStaysAsItWas(t *testing.T) {
	m := newMaker(t, 25)
	m.history(300)
	m.flush()
	m.history(50)
	d := m.kill()
	state, err := manifest.Read(d, dir)
	must(t, err)
	d.Flip(run.Name(runsDir, state.Runs[0].Number), 80, 1)
	cut := errors.New("cut off")
	var asides []*disktest.Disk
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Create && filepath.Dir(c.Name) == runsDir { // of what is written anew
			asides = append(asides, d.Kill())
			return cut
		}
		return nil
	})
	_, err = Rescue(d, dir, rescueConfig(), func([]Loss) error { return nil })
	d.Hook(nil)
	if !errors.Is(err, cut) {
		t.Fatal(err)
	}
	if left := asideOf(t, d); left != "" {
		t.Errorf("%s is left", left)
	}
	d = asides[0] // a process that was killed there
	aside := map[string][]byte{}
	for _, sub := range []string{"log", runsName} {
		names, err := d.List(filepath.Join(asideOf(t, d), sub))
		must(t, err)
		for _, name := range names {
			name = filepath.Join(sub, name)
			if aside[name] = contents(t, d, filepath.Join(asideOf(t, d), name)); !bytes.Equal(aside[name], contents(t, d, filepath.Join(dir, name))) {
				t.Errorf("%s is another one aside", name)
			}
		}
		if len(names) < 2 {
			t.Fatalf("aside are %v", names)
		}
	}
	log, _, err := wal.Open(d, logDir, logConfig(), wal.Pos(state.Replay), func(wal.Entry) error { return nil })
	must(t, err)
	for range 5 {
		for range 20 {
			m.end, err = log.Append(record.Group, make([]byte, 8<<10))
			must(t, err)
			must(t, log.Wait(t.Context(), m.end))
		}
		log.Release(m.end)
	}
	must(t, log.Close())
	for name, was := range aside {
		if !bytes.Equal(contents(t, d, filepath.Join(asideOf(t, d), name)), was) {
			t.Errorf("%s has changed", name)
		}
	}
}

// asideOf is the directory that a rescue left; empty: it left none.
func asideOf(t *testing.T, d *disktest.Disk) string {
	t.Helper()
	names, err := d.List(dir)
	must(t, err)
	for _, name := range names {
		if IsAside(name) {
			return filepath.Join(dir, name)
		}
	}
	return ""
}
