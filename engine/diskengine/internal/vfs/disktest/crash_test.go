package disktest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	. "github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// bed is a disk with a durable, empty file "f".
func bed(t *testing.T, cfg *Config) (*Disk, vfs.File) {
	t.Helper()
	d := New(cfg)
	f, err := d.Create("f")
	check(t, err)
	check(t, d.SyncDir("."))
	return d, f
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, f vfs.File, off int64, sectors string) {
	t.Helper()
	var b []byte
	for _, c := range []byte(sectors) {
		b = append(b, bytes.Repeat([]byte{c}, 512)...)
	}
	_, err := f.WriteAt(b, off*512)
	check(t, err)
}

// look returns a letter for each sector of a file, "0" for zeros and "?" for a mixture.
func look(t *testing.T, d *Disk, name string) string {
	t.Helper()
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	check(t, err)
	defer f.Close()
	var s strings.Builder
	size, err := f.Size()
	check(t, err)
	for off := int64(0); off < size; off += 512 {
		b := make([]byte, min(512, size-off))
		_, err := f.ReadAt(b, off)
		check(t, err)
		switch {
		case !bytes.Equal(b, bytes.Repeat(b[:1], len(b))):
			s.WriteByte('?')
		case b[0] == 0:
			s.WriteByte('0')
		default:
			s.WriteByte(b[0])
		}
	}
	return s.String()
}

// outcomes are all that a crash can leave of files.
func outcomes(t *testing.T, d *Disk, names ...string) []string {
	t.Helper()
	all := map[string]bool{}
	for c := range Every() {
		after := d.Crash(c)
		var s []string
		for _, name := range names {
			s = append(s, look(t, after, name))
		}
		all[strings.Join(s, " ")] = true
		again := after.Crash(Nothing()) // what was found is durable
		for i, name := range names {
			if got := look(t, again, name); got != s[i] {
				t.Fatalf("%s was %s, and %s after the next crash", name, s[i], got)
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("a crash leaves\n%q, want\n%q", got, want)
	}
}

func TestSectorsArriveEachForItself(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "aaa")
	check(t, f.Sync())
	expect(t, outcomes(t, d, "f"), "aaa")
	write(t, f, 0, "bbb")
	expect(t, outcomes(t, d, "f"), "aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb")
	check(t, f.Sync())
	expect(t, outcomes(t, d, "f"), "bbb")
}

func TestEachVersionOfASectorMayArrive(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "a")
	check(t, f.Sync())
	write(t, f, 0, "b")
	write(t, f, 0, "c")
	expect(t, outcomes(t, d, "f"), "a", "b", "c")
}

func TestSizeAndDataArriveEachForItself(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "ab")
	expect(t, outcomes(t, d, "f"), "", "00", "0b", "a0", "ab")
	check(t, f.Sync())
	expect(t, outcomes(t, d, "f"), "ab")
	d.Cut("f", 512)
	expect(t, outcomes(t, d, "f"), "a")
	d.Cut("f", 1024)
	expect(t, outcomes(t, d, "f"), "a0")
}

func TestSectorIsNeverMixed(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "a")
	check(t, f.Sync())
	_, err := f.WriteAt([]byte("bbb"), 100)
	check(t, err)
	for c := range Every() {
		g, err := d.Crash(c).Open("f")
		check(t, err)
		b := make([]byte, 512)
		_, err = g.ReadAt(b, 0)
		check(t, err)
		if n := bytes.Count(b, []byte("a")); n != 512 && n != 509 {
			t.Errorf("%d bytes are left of 512 or 509", n)
		}
	}
}

func TestLargeSectorsArriveWhole(t *testing.T) {
	d, f := bed(t, &Config{Sector: 4096})
	write(t, f, 0, "aaaaaaaabbbbbbbb")
	check(t, f.Sync())
	write(t, f, 0, "cccccccccccccccc")
	expect(t, outcomes(t, d, "f"), "aaaaaaaabbbbbbbb", "aaaaaaaacccccccc", "ccccccccbbbbbbbb", "cccccccccccccccc")
}

func TestFilesArriveEachForItself(t *testing.T) {
	d, f := bed(t, nil)
	g, err := d.Create("g")
	check(t, err)
	check(t, d.SyncDir("."))
	write(t, f, 0, "a")
	write(t, g, 0, "a")
	check(t, errors.Join(f.Sync(), g.Sync()))
	write(t, f, 0, "b")
	write(t, g, 0, "b")
	expect(t, outcomes(t, d, "f", "g"), "a a", "a b", "b a", "b b")
	check(t, g.Sync())
	expect(t, outcomes(t, d, "f", "g"), "a b", "b b")
}

func TestNamesArriveEachForItself(t *testing.T) {
	d := New(nil)
	f, err := d.Create("f")
	check(t, err)
	write(t, f, 0, "a")
	check(t, f.Sync())
	expect(t, outcomes(t, d, "f"), "a", "none") // syncing a file does not sync its name
	check(t, d.SyncDir("."))
	check(t, d.Rename("f", "g"))
	expect(t, outcomes(t, d, "f", "g"), "a none", "none a") // never both, never none
	check(t, d.Link("g", "h"))
	expect(t, outcomes(t, d, "f", "g", "h"), "a none none", "none a none", "a none a", "none a a")
	check(t, d.SyncDir("."))
	expect(t, outcomes(t, d, "f", "g", "h"), "none a a")
	check(t, d.Remove("g"))
	check(t, d.Remove("h"))
	expect(t, outcomes(t, d, "g", "h"), "a a", "a none", "none a", "none none")
	check(t, d.SyncDir("."))
	expect(t, outcomes(t, d, "g", "h"), "none none")
}

func TestReplacedFileIsOldOrNew(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "a")
	check(t, f.Sync())
	g, err := d.Create("g")
	check(t, err)
	write(t, g, 0, "b")
	expectHas := func(want bool) {
		t.Helper()
		if has := slices.Contains(outcomes(t, d, "f"), "0"); has != want {
			t.Errorf("a name without its data: %v, want %v", has, want)
		}
	}
	check(t, d.Rename("g", "f"))
	expectHas(true) // renamed before it was synced
	check(t, g.Sync())
	expectHas(false)
	expect(t, outcomes(t, d, "f"), "a", "b")
}

func TestDirectoriesArriveBeforeWhatIsInThem(t *testing.T) {
	d := New(nil)
	check(t, d.Mkdir("/a"))
	f, err := d.Create("/a/f")
	check(t, err)
	write(t, f, 0, "x")
	check(t, errors.Join(f.Sync(), d.SyncDir("/a")))
	expect(t, outcomes(t, d, "/a/f"), "none", "x")
	check(t, d.SyncDir("/"))
	expect(t, outcomes(t, d, "/a/f"), "x")
	check(t, d.Mkdir("/b"))
	check(t, d.SyncDir("/"))
	check(t, d.Rename("/a/f", "/b/f"))
	expect(t, outcomes(t, d, "/a/f", "/b/f"), "none none", "none x", "x none", "x x")
}

func TestStaleContentsTurnUpWhereNothingArrived(t *testing.T) {
	d, f := bed(t, &Config{Stale: true})
	write(t, f, 0, "s")
	check(t, f.Sync())
	check(t, errors.Join(f.Close(), d.Remove("f"), d.SyncDir(".")))
	g, err := d.Create("g")
	check(t, err)
	check(t, d.SyncDir("."))
	write(t, g, 0, "a")
	expect(t, outcomes(t, d, "g"), "", "0", "a", "s")
	check(t, g.Sync())
	expect(t, outcomes(t, d, "g"), "a")
	check(t, g.Preallocate(0, 1024))
	check(t, g.Sync())
	expect(t, outcomes(t, d, "g"), "a0")
}

func TestFailedSyncDropsWhatItWasToWrite(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		d, f := bed(t, &Config{Forgets: forgets})
		write(t, f, 0, "aa")
		check(t, f.Sync())
		write(t, f, 0, "b")
		d.Hook(func(c Call) error {
			if c.Op == Sync {
				return syscall.EIO
			}
			return nil
		})
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		d.Hook(nil)
		if got, want := look(t, d, "f"), map[bool]string{false: "ba", true: "aa"}[forgets]; got != want {
			t.Errorf("seen after a failed sync: %s, want %s", got, want)
		}
		check(t, f.Sync()) // it lies
		expect(t, outcomes(t, d, "f"), "aa")
		write(t, f, 0, "c")
		check(t, f.Sync())
		expect(t, outcomes(t, d, "f"), "ca")
	}
}

func TestKillKeepsAllAndMakesNothingSure(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "a")
	check(t, f.Sync())
	write(t, f, 0, "b")
	_, err := d.Create("g")
	check(t, err)
	_, err = d.Lock("LOCK")
	check(t, err)
	killed := d.Kill()
	if got := look(t, killed, "f") + look(t, killed, "g"); got != "b" {
		t.Errorf("seen after a kill: %q", got)
	}
	if killed.Handles() != 0 {
		t.Errorf("%d are open after a kill", killed.Handles())
	}
	expect(t, outcomes(t, killed, "f", "g"), "a ", "a none", "b ", "b none")
	g, err := killed.Open("f")
	check(t, err)
	check(t, g.Sync())
	_, err = killed.Lock("LOCK")
	check(t, err)
	expect(t, outcomes(t, killed, "f"), "b")
	expect(t, outcomes(t, d, "f"), "a", "b") // another disk
}

func TestCrashLeavesTheDiskAlone(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "aa")
	after := d.Crash(Everything())
	g, err := after.Open("f")
	check(t, err)
	write(t, g, 0, "x")
	after.Flip("f", 513, 1)
	after.Cut("f", 5000)
	if got := look(t, d, "f"); got != "aa" {
		t.Errorf("the disk that went on has %s", got)
	}
	if got := look(t, after, "f")[:2]; got != "x?" {
		t.Errorf("the other has %s", got)
	}
}

func TestFullDisk(t *testing.T) {
	d, f := bed(t, &Config{Space: 4 * 512})
	write(t, f, 0, "aaa")
	n, err := f.WriteAt(make([]byte, 1024), 3*512)
	if n != 512 || !vfs.IsFull(err) {
		t.Errorf("wrote %d, %v", n, err)
	}
	write(t, f, 0, "bbbb") // takes no more
	g, err := d.Create("g")
	check(t, err)
	if err := g.Preallocate(0, 1); !vfs.IsFull(err) {
		t.Errorf("preallocate: %v", err)
	}
	if free, err := d.Free("."); err != nil || free != 0 || d.Used() != 4*512 {
		t.Errorf("%d free, %v, %d used", free, err, d.Used())
	}
	d.Cut("f", 700)
	if free, _ := d.Free("."); free != 1024 {
		t.Errorf("%d free after truncation", free)
	}
	check(t, d.Remove("f"))
	if free, _ := d.Free("."); free != 1024 {
		t.Errorf("%d free while the removed file is open", free)
	}
	check(t, f.Close())
	check(t, g.Preallocate(0, 4*512))
	if after := d.Crash(Everything()); after.Used() != 4*512 {
		t.Errorf("%d used after a crash", after.Used())
	}
	d.SetSpace(0)
	write(t, g, 0, "cccccccc")
}

func TestHookFailsAnyCall(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "a")
	var calls []Call
	var failing error
	d.Hook(func(c Call) error { calls = append(calls, c); return failing })
	all := func() (errs []error) {
		_, err := d.Create("new")
		errs = append(errs, err)
		_, err = d.Open("f")
		errs = append(errs, err, d.Rename("f", "g"), d.Link("f", "g"), d.Remove("f"), d.Mkdir("m"), d.SyncDir("."))
		_, err = d.List(".")
		errs = append(errs, err)
		_, err = d.Free(".")
		errs = append(errs, err)
		_, err = d.Lock("L")
		errs = append(errs, err)
		_, err = f.ReadAt(make([]byte, 1), 0)
		errs = append(errs, err)
		_, err = f.WriteAt([]byte("x"), 0)
		errs = append(errs, err, f.Preallocate(0, 1), f.Sync())
		_, err = f.Size()
		return append(errs, err)
	}
	failing = syscall.EMFILE
	for i, err := range all() {
		if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), filepath.Clean(calls[i].Name)) {
			t.Errorf("%s of %s: %v", calls[i].Op, calls[i].Name, err)
		}
	}
	if got := look(t, d.Kill(), "f"); got != "a" || len(calls) != 15 {
		t.Errorf("%d failed calls left %s", len(calls), got)
	}
	for i, c := range calls[1:] {
		if c.N != calls[i].N+1 {
			t.Errorf("call %d follows %d", c.N, calls[i].N)
		}
	}
	failing = &Short{3, syscall.EIO}
	if n, err := f.WriteAt([]byte("bbbbbb"), 0); n != 3 || !errors.Is(err, syscall.EIO) {
		t.Errorf("a short write: %d, %v", n, err)
	}
	d.Hook(nil)
	b := make([]byte, 4)
	_, err := f.ReadAt(b, 0)
	check(t, err)
	if string(b) != "bbba" {
		t.Errorf("a short write left %q", b)
	}
	d.Halt()
	for _, err := range all() {
		if !errors.Is(err, ErrOff) {
			t.Errorf("after Halt: %v", err)
		}
	}
}

func TestHookMayWaitAndCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := bed(t, nil)
		var left []string
		d.Hook(func(c Call) error {
			time.Sleep(time.Hour)
			if c.Changes() {
				left = append(left, look(t, d.Crash(Everything()), "f"))
			}
			return nil
		})
		start := time.Now()
		write(t, f, 0, "a")
		check(t, f.Sync())
		if spent := time.Since(start); spent != 2*time.Hour || fmt.Sprint(left) != "[ a]" {
			t.Errorf("%v, %q", spent, left)
		}
	})
}

func TestRot(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "aaaa")
	check(t, f.Sync())
	d.Flip("f", 512, 1)
	d.Zero("f", 1000, 600)
	for _, d := range []*Disk{d, d.Crash(Nothing())} {
		if got := look(t, d, "f"); got != "a?0?" {
			t.Errorf("%s", got)
		}
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, 512); err != nil || b[0] != 'a'^1 {
		t.Errorf("%q, %v", b, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a flip beyond the end passed")
		}
	}()
	d.Flip("f", 4*512, 1)
}

func TestChoosers(t *testing.T) {
	draw := func(c Chooser) (s string) {
		for _, n := range []int{2, 3, 2} {
			s += fmt.Sprint(c.Choose(n))
		}
		return s
	}
	for want, c := range map[string]Chooser{"000": Nothing(), "121": Everything(), "020": Only(1), "101": AllBut(1)} {
		if got := draw(c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	seen := map[string]bool{}
	for seed := range uint64(1000) {
		s := draw(Seeded(seed))
		if s != draw(Seeded(seed)) {
			t.Fatalf("seed %d is not the same twice", seed)
		}
		seen[s] = true
	}
	every := 0
	for c := range Every() {
		if s := draw(c); !seen[s] {
			t.Errorf("no seed gives %s", s)
		}
		every++
	}
	if every != 12 || len(seen) != 12 {
		t.Errorf("%d ways, of which seeds gave %d, want 12", every, len(seen))
	}
}

func TestReadBeyondTheEnd(t *testing.T) {
	_, f := bed(t, nil)
	write(t, f, 0, "a")
	if n, err := f.ReadAt(make([]byte, 600), 0); n != 512 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.ReadAt(make([]byte, 1), 600); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

// TestRotWhileASyncIsUnderWay: what rots meanwhile is so afterwards, and what is written meanwhile may be lost.
func TestRotWhileASyncIsUnderWay(t *testing.T) {
	d, f := bed(t, nil)
	write(t, f, 0, "abc")
	check(t, f.Sync())
	write(t, f, 0, "de")
	d.Hook(func(c Call) error {
		if c.Op == Sync {
			write(t, f, 2, "f")
			d.Flip("f", 0, 'd'^'x')
		}
		return nil
	})
	check(t, f.Sync())
	d.Hook(nil)
	if got := look(t, d.Crash(Nothing()), "f"); got != "?ec" { // of the first a byte has changed
		t.Errorf("it has %q", got)
	}
}
