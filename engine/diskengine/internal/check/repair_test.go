package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// living is what those who read a sound store are given, wherever it stands.
func living(t *testing.T, d *disktest.Disk) []string {
	t.Helper()
	h := read(t, d)
	all := h.log
	for _, line := range h.runs[1:] { // the first is the manifest
		number, rest, _ := strings.Cut(line, ": ")
		all = append(all, rest)
		if number == "" {
			t.Fatal(line)
		}
	}
	slices.Sort(all)
	return all
}

// sick is a store with marks and two runs whose indexes are damaged.
func sick(t *testing.T, seed uint64) (d *disktest.Disk, want []string, damaged []string) {
	t.Helper()
	m := newMaker(t, seed)
	for range 2 {
		m.history(40)
		m.flush()
	}
	m.do(m.gone(m.stood()), m.gone(m.any(func(x *thing) bool { return x.at.Run != 0 && x.area == recent.Dead })))
	m.marked()
	m.history(20)
	d = m.close()
	want = living(t, d)
	for _, r := range m.next.Runs {
		if r.Marks != 0 && len(damaged) < 2 {
			name := run.Name(runsDir, r.Number)
			d.Flip(name, int64(r.Bytes)-100, 1) // in the footer
			damaged = append(damaged, name)
		}
	}
	if len(damaged) < 2 {
		t.Fatalf("seed %d: %d runs with marks", seed, len(damaged))
	}
	return d, want, damaged
}

// TestRepair damages runs anywhere: a store is mended and has all that it had, or it is left as
// it is but for files that nothing names.
func TestRepair(t *testing.T) {
	seed := rand.Uint64()
	m := newMaker(t, seed)
	for range 3 {
		m.history(60)
		m.flush()
	}
	m.history(30)
	sound := m.close()
	want := living(t, sound)
	was, err := manifest.Read(sound, dir)
	must(t, err)
	rng := rand.New(rand.NewPCG(seed, 3))
	mended, left := 0, 0
	for k := range disktest.Thorough(40, 60) {
		d := sound.Kill()
		r := m.next.Runs[rng.IntN(len(m.next.Runs))]
		b, off := contents(t, d, run.Name(runsDir, r.Number)), rng.Int64N(int64(r.Bytes))
		for b[off] == 0 && rng.IntN(50) > 0 { // most of these are between parts
			off = rng.Int64N(int64(r.Bytes))
		}
		d.Flip(run.Name(runsDir, r.Number), off, 1<<rng.IntN(8))
		f, err := d.Create(runsDir + "/0000000000ffffff.marks")
		must(t, errors.Join(err, f.Close()))
		before := checked(t, d)
		done, after, err := Repair(d, dir, nil)
		if err != nil || d.Handles() > 0 || len(after.Leftovers) > 0 {
			t.Fatalf("seed %d, damage %d at %d of run %d: %v, %+v", seed, k, off, r.Number, err, after)
		}
		if !after.Sound() {
			left++
			state, err := manifest.Read(d, dir)
			must(t, err)
			if len(done) != 1 || fmt.Sprint(after.Findings) != fmt.Sprint(before.Findings) || !reflect.DeepEqual(state, was) {
				t.Fatalf("seed %d, damage %d at %d of run %d: did %v, found %v", seed, k, off, r.Number, done, after.Findings)
			}
			continue
		}
		if !before.Sound() {
			mended++
			if len(done) < 2 || len(contents(t, d, run.Name(runsDir, r.Number)+damagedSuffix)) != int(r.Bytes) {
				t.Fatalf("seed %d, damage %d at %d of run %d: did %v", seed, k, off, r.Number, done)
			}
		}
		if got := living(t, d); !slices.Equal(got, want) {
			t.Fatalf("seed %d, damage %d at %d of run %d: others live", seed, k, off, r.Number)
		}
	}
	if mended == 0 || left == 0 {
		t.Errorf("seed %d: %d were mended, %d left alone", seed, mended, left)
	}
	t.Logf("%d were mended, %d left alone", mended, left)
}

// TestRepairTwoRuns mends all of a store, whose marks are taken over.
func TestRepairTwoRuns(t *testing.T) {
	d, want, damaged := sick(t, 11)
	done, after, err := Repair(d, dir, nil)
	must(t, err)
	if !after.Sound() || len(done) < len(damaged) || !slices.Equal(living(t, d), want) {
		t.Fatalf("did %v, found %v", done, after.Findings)
	}
	if done, after, err = Repair(d, dir, nil); err != nil || !after.Sound() || len(done) > 0 {
		t.Errorf("a second time: did %v, %+v, %v", done, after, err)
	}
}

// TestRepairKeepsNumbers: a run gets no number that the log names, since a death told there would
// hit it.
func TestRepairKeepsNumbers(t *testing.T) {
	m := newMaker(t, 12)
	m.history(100)
	m.flush()
	x := m.stood()
	x.at.Run += 50 // of a merge that a crash cut off
	m.do(m.gone(x))
	d := m.close()
	is := m.next.Runs[0]
	d.Flip(run.Name(runsDir, is.Number), int64(is.Bytes)-100, 1)
	_, after, err := Repair(d, dir, nil)
	must(t, err)
	state, err := manifest.Read(d, dir)
	must(t, err)
	if last := state.Runs[len(state.Runs)-1].Number; !after.Sound() || last <= x.at.Run {
		t.Errorf("run %d was made, and the log names %d: %v", last, x.at.Run, after.Findings)
	}
}

// TestRepairPowerLoss lets the power go before each call of a repair that changes the disk: after
// another one the store is sound, and has all that it had.
func TestRepairPowerLoss(t *testing.T) {
	d, want, _ := sick(t, 13)
	draws, losses := rand.Uint64(), 0
	d.Hook(func(c disktest.Call) error {
		if !c.Changes() {
			return nil
		}
		draws++
		for _, chooser := range []disktest.Chooser{disktest.Seeded(draws), [...]disktest.Chooser{disktest.Nothing(), disktest.Everything()}[draws%2]} {
			after := d.Crash(chooser)
			losses++
			if _, rep, err := Repair(after, dir, nil); err != nil || !rep.Sound() || !slices.Equal(living(t, after), want) {
				t.Fatalf("power lost before %+v, draw %d: %v, %+v", c, draws, err, rep)
			}
		}
		return nil
	})
	_, rep, err := Repair(d, dir, nil)
	d.Hook(nil)
	must(t, err)
	if !rep.Sound() || losses < 20 {
		t.Errorf("%d losses: %v", losses, rep.Findings)
	}
	if after := d.Crash(disktest.Nothing()); !checked(t, after).Sound() || !slices.Equal(living(t, after), want) {
		t.Error("what was mended is not durable")
	}
}

// TestRepairFaults lets each call of a repair fail in turn: it says so, and another one mends.
func TestRepairFaults(t *testing.T) {
	sound, want, _ := sick(t, 14)
	d, changes := sound.Kill(), map[int64]bool{}
	d.Hook(func(c disktest.Call) error { changes[c.N] = c.Changes(); return nil })
	_, _, err := Repair(d, dir, nil)
	must(t, err)
	for at := int64(1); ; at++ {
		if !changes[at] && at%int64(max(1, 11/disktest.Thorough(1, 11))) != 0 && at < int64(len(changes)) {
			continue // of those that change nothing only some
		}
		d, hit, closing := sound.Kill(), false, false
		d.Hook(func(c disktest.Call) error {
			if hit = hit || c.N == at; c.N != at {
				return nil
			}
			closing = c.Op == disktest.Close // does not matter of a file that is damaged
			return errTest
		})
		_, rep, err := Repair(d, dir, nil)
		d.Hook(nil)
		if hit != errors.Is(err, errTest) && !closing || (err == nil) != (rep != nil) || d.Handles() > 0 {
			t.Fatalf("call %d: %v, %+v, %d files are open", at, err, rep, d.Handles())
		}
		if _, rep, err = Repair(d, dir, nil); err != nil || !rep.Sound() {
			t.Fatalf("call %d: %v, %+v", at, err, rep)
		}
		if !hit {
			if !slices.Equal(living(t, d), want) {
				t.Error("others live")
			}
			return
		}
	}
}
