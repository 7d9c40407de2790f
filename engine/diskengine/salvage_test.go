package diskengine_test

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// salvaged makes a store in one directory of what can be read of another one.
func salvaged(t *testing.T, f vfs.FS, from, to string) verify.Salvaged {
	t.Helper()
	out, err := verify.Salvage(f, from, to, nil, func(*verify.Salvaged) error { return nil })
	if err != nil || !out.After.Sound() {
		t.Fatal(err, out.After)
	}
	return out
}

// TestSalvagedStoreServes spoils a store: it says what to do instead of being opened, and when that was
// done it serves, with what was not spoilt: messages, leases, and the dead.
func TestSalvagedStoreServes(t *testing.T) {
	for _, what := range []string{"MANIFEST", "runs", "log"} {
		t.Run(what, func(t *testing.T) {
			m, want := full(t)
			name := filepath.Join("data", what)
			if what == "MANIFEST" {
				if err := m.disk.Remove(name); err != nil {
					t.Fatal(err)
				}
			} else {
				names, err := m.disk.List(name)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, ".run") || strings.HasSuffix(n, ".log") })
				m.disk.Flip(filepath.Join(name, names[i]), 70, 1) // in the first block, or in the header
			}
			if what != "runs" { // of which blocks are read when they are needed
				refusedAsDamaged(t, m)
			}
			m.disk.Hook(nil)
			if out := salvaged(t, m.disk, "data", "made"); len(out.Losses) == 0 {
				t.Error("nothing is lost")
			}
			m.dir = "made"
			e := m.open(t)
			ctx := t.Context()
			kept := 0
			for key, s := range want {
				msg, err := e.Get(ctx, engine.Ref{Queue: "q", Key: key})
				if errors.Is(err, engine.ErrNotFound) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if msg.State == s {
					kept++
				} else if what == "MANIFEST" && s != engine.Gone {
					t.Errorf("%s is %v, was %v", key, msg.State, s)
				}
			}
			if kept < 20 {
				t.Errorf("%d of %d are what they were", kept, len(want))
			}
			r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "new"}})
			if err != nil || r[0].Err != nil {
				t.Error(r, err)
			}
			if err := e.Flush(ctx); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			rep, err := verify.Check(m.disk, "made", nil)
			if err != nil || !rep.Sound() {
				t.Error(err, rep)
			}
		})
	}
}

// TestOpeningWithoutAPart: a store of which something is missing is damaged, and salvaged also without one of
// its directories; one that was empty is made again.
func TestOpeningWithoutAPart(t *testing.T) {
	remove := func(t *testing.T, m *machine, name string) {
		t.Helper()
		names, _ := m.disk.List(name)
		for _, n := range names {
			if err := m.disk.Remove(filepath.Join(name, n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.disk.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	long := func(t *testing.T) *machine { // its log has several segments
		m, _ := full(t)
		e := m.open(t)
		for range 5 {
			large := message("q", "", 0)
			large.Body = make([]byte, 40<<10)
			must(t, pushAll(t, e, large))
		}
		must(t, e.Close())
		return m
	}
	of := long(t)
	parts := []string{"MANIFEST", "runs", "log"}
	for _, in := range parts[1:] {
		names, err := of.disk.List(filepath.Join("data", in))
		must(t, err)
		for _, name := range names {
			if path := filepath.Join(in, name); in == "runs" || begun(t, of, filepath.Join("data", path)) {
				parts = append(parts, path)
			}
		}
	}
	parts = parts[:len(parts)-1] // without the last segment the log ends as after a crash
	met := map[string]int{}
	for _, what := range parts {
		met[filepath.Ext(what)]++
		t.Run(what, func(t *testing.T) {
			m := long(t)
			remove(t, m, filepath.Join("data", what))
			refusedAsDamaged(t, m)
			m.disk.Hook(nil)
			if out := salvaged(t, m.disk, "data", "made"); len(out.Losses) == 0 || out.Before.Sound() {
				t.Fatal(out)
			}
			m.dir = "made"
			if err := m.open(t).Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, ext := range []string{".run", ".log"} {
		if met[ext] < 2 {
			t.Errorf("no file %q was missing: %v", ext, parts)
		}
	}
	t.Run("empty", func(t *testing.T) {
		m := (&machines{clock: enginetest.NewClock()}).machine()
		if err := m.open(t).Close(); err != nil {
			t.Fatal(err)
		}
		remove(t, m, "data/runs")
		e := m.open(t)
		if err := errors.Join(pushAll(t, e, message("q", "a", 0)), e.Flush(t.Context()), e.Close()); err != nil {
			t.Error(err)
		}
	})
}

// begun reports whether a segment of a log has been written to.
func begun(t *testing.T, m *machine, name string) bool {
	t.Helper()
	f, err := m.disk.Open(name)
	must(t, err)
	b := make([]byte, 8)
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	return string(b) == "tarrylog"
}

// refusedAsDamaged: a store is not opened, and it is said what can be done.
func refusedAsDamaged(t *testing.T, m *machine) {
	t.Helper()
	e, err := m.tryOpen()
	if err == nil {
		t.Fatal(e.Close())
	}
	var ours *engine.Error
	if !errors.As(err, &ours) || !strings.Contains(ours.Hint, "tarry check "+cmp.Or(m.dir, "data")+" --salvage") {
		t.Fatal(err)
	}
}
