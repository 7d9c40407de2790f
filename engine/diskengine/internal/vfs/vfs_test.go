package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// each sstables a test on a directory of the operating system and on a simulated one.
func each(t *testing.T, test func(t *testing.T, f vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, vfs.OS{}, t.TempDir()) })
	t.Run("simulated", func(t *testing.T) {
		d := disktest.New(nil)
		if err := d.Mkdir("/dir"); err != nil {
			t.Fatal(err)
		}
		test(t, d, "/dir")
	})
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, f vfs.FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		file := must(f.Create(a))(t)
		for what, c := range map[string]struct{ got, want error }{
			"create what is there":    {second(f.Create(a)), fs.ErrExist},
			"open what is not":        {second(f.Open(b)), fs.ErrNotExist},
			"create without a folder": {second(f.Create(filepath.Join(b, "c"))), fs.ErrNotExist},
			"rename what is not":      {f.Rename(b, a), fs.ErrNotExist},
			"link what is not":        {f.Link(b, filepath.Join(dir, "c")), fs.ErrNotExist},
			"link onto itself":        {f.Link(a, a), fs.ErrExist},
			"remove what is not":      {f.Remove(b), fs.ErrNotExist},
			"remove a full folder":    {f.Remove(dir), syscall.ENOTEMPTY},
			"list what is not":        {second(f.List(b)), fs.ErrNotExist},
			"make what is there":      {f.Mkdir(dir), fs.ErrExist},
			"sync what is not":        {f.SyncDir(b), fs.ErrNotExist},
		} {
			if !errors.Is(c.got, c.want) || !strings.Contains(fmt.Sprint(c.got), dir) {
				t.Errorf("%s: %v, want %v and the name", what, c.got, c.want)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"read": second(file.ReadAt(make([]byte, 1), 0)), "write": second(file.WriteAt([]byte("x"), 0)),
			"sync": file.Sync(), "size": second(file.Size()), "close": file.Close(),
		} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("%s after close: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, f vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		l := must(f.Lock(name))(t)
		if _, err := f.Lock(name); !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), name) {
			t.Errorf("the second lock: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := must(f.Lock(name))(t).Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLockSaysWhoHasIt takes a lock that was left by somebody, and is told of by its holder alone.
func TestLockSaysWhoHasIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), vfs.HolderName), []byte("pid 1234567890 on a host of old since a very long time ago\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := must((vfs.OS{}).Lock(name))(t)
	defer l.Close()
	want := fmt.Sprintf("pid %d on ", os.Getpid())
	if _, err := (vfs.OS{}).Lock(name); !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "old") {
		t.Errorf("the second lock: %v, want %q", err, want)
	}
}

// TestLockOutlivesItsFile removes the file of a lock that is held, as somebody does who takes it for stale.
func TestLockOutlivesItsFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there a file that is locked cannot be removed")
	}
	name := filepath.Join(t.TempDir(), "LOCK")
	l := must((vfs.OS{}).Lock(name))(t)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := (vfs.OS{}).Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("the second lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := must((vfs.OS{}).Lock(name))(t).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMkdirAllMakesDurably(t *testing.T) {
	d := disktest.New(nil)
	for range 2 {
		if err := vfs.MkdirAll(d, "/a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Crash(disktest.Nothing()).SyncDir("/a/b/c"); err != nil {
		t.Error(err)
	}
	if err := vfs.MkdirAll(vfs.OS{}, filepath.Join(t.TempDir(), "a", "b")); err != nil {
		t.Error(err)
	}
	must(d.Create("/a/file"))(t)
	if err := vfs.MkdirAll(d, "/a/file/b"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

func TestPreallocateTakesSpace(t *testing.T) {
	each(t, func(t *testing.T, f vfs.FS, dir string) {
		file := must(f.Create(filepath.Join(dir, "a")))(t)
		defer file.Close()
		must(file.WriteAt([]byte("abc"), 0))(t)
		if err := file.Preallocate(0, 1<<20); errors.Is(err, errors.ErrUnsupported) {
			t.Skip("this file system takes no space ahead of what is written: what Preallocate does then is not tested")
		} else if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 6)
		must(file.ReadAt(b, 0))(t)
		if size := must(file.Size())(t); size != 1<<20 || string(b) != "abc\x00\x00\x00" {
			t.Errorf("%d bytes, %q", size, b)
		}
	})
}

func TestFreeSpace(t *testing.T) {
	if n := must(vfs.OS{}.Free(t.TempDir()))(t); n <= 0 {
		t.Errorf("%d bytes are free", n)
	}
	if _, err := (vfs.OS{}).Free("/is/not/there"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestIsFull(t *testing.T) {
	for err, full := range map[error]bool{
		&fs.PathError{Err: syscall.ENOSPC}: true, syscall.EDQUOT: true, syscall.EIO: false, nil: false,
	} {
		if vfs.IsFull(err) != full {
			t.Errorf("%v is full: %v", err, !full)
		}
	}
}

// TestSimulatedAsReal carries out the same random calls on the file system of this machine
// and on a simulated one: what they answer is the same.
func TestSimulatedAsReal(t *testing.T) {
	for range 10 {
		seed := rand.Uint64()
		dir := t.TempDir()
		sim := disktest.New(&disktest.Config{Sector: 512 << (seed % 4)})
		if err := vfs.MkdirAll(sim, dir); err != nil {
			t.Fatal(err)
		}
		if got, want := history(sim, dir, seed), history(vfs.OS{}, dir, seed); !slices.Equal(got, want) {
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("seed %d, step %d: simulated %.200s, real %.200s", seed, i, got[i], want[i])
				}
			}
		}
		if n := sim.Handles(); n != 0 {
			t.Fatalf("seed %d: %d handles are left", seed, n)
		}
	}
}

func history(f vfs.FS, dir string, seed uint64) (told []string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	open := map[int]vfs.File{}
	name := func() string { return filepath.Join(dir, string(rune('a'+rng.IntN(4)))) }
	kind := func(err error) string {
		for _, e := range []error{fs.ErrExist, fs.ErrNotExist, io.EOF} {
			if errors.Is(err, e) {
				return e.Error()
			}
		}
		return fmt.Sprint(err)
	}
	say := func(v any, err error) { told = append(told, fmt.Sprintf("%v %s", v, kind(err))) }
	for range 300 {
		at := rng.IntN(4)
		file, op := open[at], rng.IntN(11)
		switch {
		case op == 0 && file == nil:
			g, err := f.Create(name())
			say("create", err)
			if err == nil {
				open[at] = g
			}
		case op == 1 && file == nil:
			g, err := f.Open(name())
			say("open", err)
			if err == nil {
				open[at] = g
			}
		case op == 2 && file != nil:
			say("close", file.Close())
			delete(open, at)
		case op == 3:
			say("rename", f.Rename(name(), name()))
		case op == 4:
			say("link", f.Link(name(), name()))
		case op == 5 && rng.IntN(3) == 0:
			say("remove", f.Remove(name()))
		case op == 6:
			list, err := f.List(dir)
			say(list, err)
			if rng.IntN(10) == 0 {
				say("syncdir", f.SyncDir(dir))
			}
		case op == 7 && file != nil:
			size, err := file.Size()
			say(size, err)
		case op == 8 && file != nil:
			b := make([]byte, rng.IntN(3000))
			n, err := file.ReadAt(b, rng.Int64N(5000))
			say(fmt.Sprint(n, b[:n]), err)
		case file != nil:
			b := bytes.Repeat([]byte{byte(rng.IntN(255) + 1)}, 1+rng.IntN(2000))
			n, err := file.WriteAt(b, rng.Int64N(4000))
			say(n, err)
			if rng.IntN(20) == 0 { // these take their time
				say("sync", file.Sync())
			}
		}
	}
	for at := range 4 {
		if open[at] != nil {
			say("close", open[at].Close())
		}
	}
	return told
}

func TestOwnerAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	must(vfs.OS{}.Create(name))(t).Close()
	if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("%v, %v: readable by all", info.Mode(), err)
	}
}

// TestLinkOrCopy copies where the file system has no links, and not where a link failed that may have been made.
func TestLinkOrCopy(t *testing.T) {
	for fault, want := range map[error]error{nil: nil, syscall.EXDEV: nil, &disktest.Late{Err: syscall.EIO}: syscall.EIO} {
		d := disktest.New(nil)
		if err := vfs.WriteFile(d, "/from", []byte("content")); err != nil {
			t.Fatal(err)
		}
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Link {
				return fault
			}
			return nil
		})
		copied, err := vfs.LinkOrCopy(d, "/from", "/to", func(int) error { return nil })
		wantCopied := int64(0)
		if fault == syscall.EXDEV {
			wantCopied = 7
		}
		if !errors.Is(err, want) || want == nil && err != nil || copied != wantCopied {
			t.Errorf("%v: copied %d bytes, %v", fault, copied, err)
		}
	}
}
