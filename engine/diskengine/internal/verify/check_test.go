package verify

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestSound: stores of random histories are sound, and what lives in them is counted, closed or
// killed, and after each loss of power.
func TestSound(t *testing.T) {
	seed := rand.Uint64()
	merged, deleted := 0, 0
	for i := range uint64(12) {
		m := newMaker(t, seed+i)
		m.history(200 + int(i)*80)
		want := m.queues()
		d := m.kill()
		if i%2 == 0 {
			d = m.d // closed meanwhile
		}
		for k, d := range []*disktest.Disk{d, d.Crash(disktest.Nothing()), d.Crash(disktest.Everything())} {
			rep := checked(t, d)
			if !rep.Sound() || !reflect.DeepEqual(rep.Queues, want) || rep.Tables != len(m.next.Tables) || k == 0 && len(rep.Leftovers) > 0 {
				t.Fatalf("seed %d: %+v\nwant %+v", seed+i, rep, want)
			}
			if (rep.Torn == nil) != (i%2 == 0) {
				t.Errorf("seed %d: closed %v, torn %+v", seed+i, i%2 == 0, rep.Torn)
			}
		}
		for _, r := range m.next.Tables {
			deleted += min(1, len(r.Deleted))
		}
		merged += m.merged
	}
	if merged == 0 || deleted == 0 {
		t.Errorf("seed %d: %d merges, %d sstables with deletion bitmaps", seed, merged, deleted)
	}
}

// TestNoStore: what cannot be checked is an error, not a finding.
func TestNoStore(t *testing.T) {
	d := disktest.New(nil)
	if _, err := Check(d, dir, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	must(t, vfs.MkdirAll(d, dir))
	if _, err := Check(d, dir, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	if names, _ := d.List(dir); len(names) > 0 {
		t.Errorf("made %v", names)
	}
	m := newMaker(t, 1)
	d = m.close()
	lock, err := d.Lock(dir + "/LOCK")
	must(t, err)
	if _, err := Check(d, dir, nil); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a store that is open: %v", err)
	}
	must(t, lock.Close())
	if rep := checked(t, d); !rep.Sound() {
		t.Errorf("%+v", rep)
	}
}

// TestReadErrorIsNoFinding lets each call fail in turn: the check ends with that error, and has
// nothing open or locked.
func TestReadErrorIsNoFinding(t *testing.T) {
	m := newMaker(t, 3)
	m.history(120)
	m.flush()
	m.history(60)
	d := m.close()
	for at := int64(1); ; at++ {
		start, hit := d.Calls(), false
		d.Hook(func(c disktest.Call) error {
			if hit = hit || c.N == start+at; c.N == start+at {
				return errTest
			}
			return nil
		})
		rep, err := Check(d, dir, nil)
		d.Hook(nil)
		if hit != errors.Is(err, errTest) || hit != (rep == nil) || !hit && err != nil || d.Handles() > 0 {
			t.Fatalf("call %d: %v, %+v, %d files are open", at, err, rep, d.Handles())
		}
		if !hit {
			return
		}
		if lock, err := d.Lock(dir + "/LOCK"); err != nil {
			t.Fatalf("call %d: %v", at, err)
		} else {
			must(t, lock.Close())
		}
	}
}

// TestPace: an error of the pace ends the check.
func TestPace(t *testing.T) {
	m := newMaker(t, 4)
	m.history(300)
	m.flush()
	d := m.close()
	calls := 0
	for at := 0; ; at++ {
		calls = 0
		rep, err := Check(d, dir, &Config{Pace: func(int) error {
			if calls++; calls == at+1 {
				return errTest
			}
			return nil
		}})
		if calls <= at {
			if must(t, err); !rep.Sound() || calls == 0 {
				t.Errorf("%d calls: %+v", calls, rep)
			}
			return
		}
		if !errors.Is(err, errTest) || d.Handles() > 0 {
			t.Fatalf("call %d: %v", at, err)
		}
	}
}

// TestLeftovers: what a crash left is listed, and no finding.
func TestLeftovers(t *testing.T) {
	m := newMaker(t, 5)
	m.history(50)
	m.flush()
	d := m.close()
	want := []string{tablesDir + "/00000000000000aa.run", dir + "/MANIFEST.new"}
	for _, name := range append(want, tablesDir+"/readme", dir+"/notes.run") {
		f, err := d.Create(name)
		must(t, errors.Join(err, f.Close()))
	}
	if rep := checked(t, d); !rep.Sound() || !reflect.DeepEqual(rep.Leftovers, want) {
		t.Errorf("%+v", rep)
	}
}
