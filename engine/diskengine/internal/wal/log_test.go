package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

func TestEntriesComeBack(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, all := open(t, d, cfg, 0)
	same(t, all, nil)
	var want []item
	for round := range 4 {
		for i := range 40 { // several segments
			want = append(want, add(t, l, byte(i), text(round*100+i, i*i*5)))
		}
		must(t, l.Close())
		if n := d.Handles(); n != 0 {
			t.Fatalf("%d files are open after Close", n)
		}
		var found Found
		var err error
		l, found, all, err = tryOpen(d, cfg, 0)
		must(t, err)
		same(t, all, want)
		if found.Torn != nil || found.End != want[len(want)-1].end || found.Segments < round+1 {
			t.Fatalf("found %+v", found)
		}
	}
	must(t, l.Close())
	for _, from := range []int{0, 1, 57, len(want)} {
		pos := Pos(0)
		if from > 0 {
			pos = want[from-1].end
		}
		l, all := open(t, d.Kill(), cfg, pos)
		same(t, all, want[from:])
		must(t, l.Close())
	}
	if _, _, _, err := tryOpen(d, cfg, want[50].end-1); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "no entry begins") {
		t.Errorf("from within an entry: %v", err)
	}
	if _, _, _, err := tryOpen(d, cfg, l.End()+1); !errors.Is(err, ErrDamaged) {
		t.Errorf("from behind the end: %v", err)
	}
	if n := d.Handles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

func TestEntriesLongerThanSegments(t *testing.T) {
	for _, fs := range []vfs.FS{newDisk(t), real{t.TempDir()}} {
		cfg := small()
		if _, ok := fs.(real); ok {
			cfg.SegmentBytes = 1 << 20 // its syncs take their time
		}
		l, _ := open(t, fs, cfg, 0)
		var want []item
		for i, n := range []int{0, 100, int(cfg.SegmentBytes) - headerSize, 3 * minSegment, 1, bufferSize, bufferSize + 1, maxPiece - 3, 3 << 20, 7} {
			want = append(want, add(t, l, byte(i), text(i, n)))
		}
		must(t, l.Close())
		l, all := open(t, fs, cfg, 0)
		same(t, all, want)
		must(t, l.Close())
	}
	cfg := small()
	cfg.SegmentBytes = 8 << 20 // whole pieces in one segment
	d := newDisk(t)
	l, _ := open(t, d, cfg, 0)
	want := []item{add(t, l, 1, text(1, 5<<20)), add(t, l, 2, text(2, 5<<20))}
	must(t, l.Close())
	l, all := open(t, d, cfg, 0)
	same(t, all, want)
	must(t, l.Close())
}

// real is a directory of the operating system, called /log.
type real struct{ dir string }

func (r real) at(name string) string { return filepath.Join(r.dir, filepath.Base(name)) }

func (r real) Create(name string) (vfs.File, error) { return vfs.OS{}.Create(r.at(name)) }
func (r real) Open(name string) (vfs.File, error)   { return vfs.OS{}.Open(r.at(name)) }
func (r real) Rename(from, to string) error         { return vfs.OS{}.Rename(r.at(from), r.at(to)) }
func (r real) Remove(name string) error             { return vfs.OS{}.Remove(r.at(name)) }
func (r real) List(string) ([]string, error)        { return vfs.OS{}.List(r.dir) }
func (r real) SyncDir(string) error                 { return vfs.OS{}.SyncDir(r.dir) }
func (r real) Link(from, to string) error           { return vfs.OS{}.Link(r.at(from), r.at(to)) }
func (r real) Mkdir(string) error                   { return errTest }
func (r real) Lock(string) (io.Closer, error)       { return nil, errTest }
func (r real) Free(string) (int64, error)           { return vfs.OS{}.Free(r.dir) }

func TestSyncIsSharedAndTheNextBufferFillsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		l, _ := open(t, d, small(), 0)
		add(t, l, 1, nil)
		synctest.Wait() // for the preparer
		syncs := 0
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync {
				syncs++
				time.Sleep(time.Second)
			}
			return nil
		})
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if i > 0 {
					time.Sleep(time.Millisecond) // while the sync for the first runs
				}
				add(t, l, 1, text(i, 100))
			})
		}
		wg.Wait()
		if spent := time.Since(start); syncs != 2 || spent != 2*time.Second {
			t.Errorf("%d syncs in %v, want 2 in 2 s", syncs, spent)
		}
		d.Hook(nil)
		must(t, l.Close())
	})
}

func TestWaitHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		l, _ := open(t, d, small(), 0)
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync {
				time.Sleep(time.Minute)
			}
			return nil
		})
		end, err := l.Append(1, []byte("a"))
		must(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTest)
		defer cancel()
		if err := l.Wait(ctx, end); !errors.Is(err, ErrUnknown) || !errors.Is(err, errTest) {
			t.Errorf("wait: %v", err)
		}
		must(t, l.Wait(t.Context(), end))
		must(t, l.Wait(ctx, end)) // it is durable, whatever the context says
		if err := l.Wait(t.Context(), end+1); err == nil {
			t.Error("waited for what was never appended")
		}
		must(t, l.Close())
	})
}

func TestAdmitWaitsWhileMuchIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		cfg.MaxPending = 1000
		l, _ := open(t, d, cfg, 0)
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync {
				time.Sleep(time.Minute)
			}
			return nil
		})
		must(t, l.Admit(t.Context()))
		_, err := l.Append(1, text(1, 2000))
		must(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTest)
		defer cancel()
		if err := l.Admit(ctx); !errors.Is(err, errTest) || errors.Is(err, ErrUnknown) {
			t.Errorf("admit: %v", err)
		}
		start := time.Now()
		must(t, l.Admit(t.Context()))
		if spent := time.Since(start); spent != 59*time.Second {
			t.Errorf("admitted after %v", spent)
		}
		must(t, l.Close())
		for _, err := range []error{l.Admit(t.Context()), second(l.Append(1))} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestTooLong(t *testing.T) {
	cfg := small()
	cfg.MaxEntry = 10
	l, _ := open(t, newDisk(t), cfg, 0)
	add(t, l, 1, make([]byte, 10))
	if _, err := l.Append(1, make([]byte, 5), make([]byte, 6)); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	add(t, l, 1, make([]byte, 10))
	must(t, l.Close())
}

func TestCloseWaitsAndIsTheSameTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		l, _ := open(t, d, cfg, 0)
		want, err := put(l, 1, []byte("a"))
		must(t, err)
		d.Hook(func(c disktest.Call) error { time.Sleep(time.Second); return nil })
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := l.Close(); err != nil || l.Synced() != want.end {
					t.Errorf("%v, synced up to %d", err, l.Synced())
				}
			})
		}
		wg.Wait()
		d.Hook(nil)
		must(t, l.Close())
		must(t, l.Wait(t.Context(), want.end))
		l, all := open(t, d.Crash(disktest.Nothing()), cfg, 0)
		same(t, all, []item{want})
		must(t, l.Close())
	})
}

func TestReleasedSegmentsAreUsedAgainAndSparesBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		cfg.Keep = 3
		l, _ := open(t, d, cfg, 0)
		var last item
		created := 0
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Create {
				created++
			}
			return nil
		})
		for i := range 200 {
			if last = add(t, l, 1, text(i, 10000)); i%10 == 9 {
				l.Release(last.end)
			}
			synctest.Wait()
			if n := len(files(t, d)); n > 6 {
				t.Fatalf("%d files after %d entries", n, i)
			}
		}
		if created > 6 {
			t.Errorf("%d files were made", created)
		}
		for i := range 60 {
			last = add(t, l, 1, text(i, 10000))
		}
		l.Release(last.end)
		synctest.Wait()
		if got := len(files(t, d)); got != 1+cfg.Keep || l.Size() != minSegment {
			t.Errorf("%d files are left, %d bytes", got, l.Size())
		}
		must(t, l.Close())
		if _, _, _, err := tryOpen(d, cfg, 0); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "missing") {
			t.Errorf("from what was released: %v", err)
		}
		l, all := open(t, d, cfg, last.end)
		same(t, all, nil)
		next := add(t, l, 2, []byte("next"))
		must(t, l.Close())
		l, all = open(t, d, cfg, last.end)
		same(t, all, []item{next})
		must(t, l.Close())
	})
}

// TestSegmentsThatCannotBeUsedAgain: where a released segment cannot be renamed, or not even removed, a
// new one is made, and the log goes on.
func TestSegmentsThatCannotBeUsedAgain(t *testing.T) {
	for what, fails := range map[string]func(disktest.Call) error{
		"no permission": func(c disktest.Call) error { return failing(c, syscall.EACCES, disktest.Rename) },
		"no file":       func(c disktest.Call) error { return failing(c, syscall.ENOENT, disktest.Rename) },
		"not at all":    func(c disktest.Call) error { return failing(c, syscall.EPERM, disktest.Rename, disktest.Remove) },
	} {
		t.Run(what, func(t *testing.T) {
			d, cfg := newDisk(t), small()
			l, _ := open(t, d, cfg, 0)
			d.Hook(fails)
			var last item
			for i := range 60 {
				last = add(t, l, 1, text(i, 10000))
				l.Release(last.end)
			}
			must(t, l.Close())
			if n := len(files(t, d)); what != "not at all" && n > 5 {
				t.Errorf("%d files are left", n)
			}
			d.Hook(nil)
			if n := d.Handles(); n > 0 {
				t.Errorf("%d files are open", n)
			}
			l, _ = open(t, d, cfg, last.end)
			must(t, l.Close())
		})
	}
}

// failing returns an error for some calls.
func failing(c disktest.Call, err error, ops ...string) error {
	if slices.Contains(ops, c.Op) {
		return err
	}
	return nil
}

// TestDroppedStaysDropped loses the header and the first frame of a segment, of which the
// second has arrived, and appends what was in the first again: the second does not come back.
func TestDroppedStaysDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		cfg.SegmentBytes = 1 << 20
		l, _ := open(t, d, cfg, 0)
		want := []item{add(t, l, 1, nil)}
		synctest.Wait()
		var after *disktest.Disk
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync {
				time.Sleep(time.Second)
			}
			if c.Op == disktest.Sync && strings.HasSuffix(c.Name, "2.log") {
				after = d.Crash(disktest.Everything())
			}
			return nil
		})
		var items []item
		// The frame of the third ends where zeros are written ahead to.
		for _, n := range []int{10, 1<<20 - headerSize - 3000, fillAhead - headerSize - frameSize - 4, 100_000} {
			i, err := put(l, 2, text(n, n))
			must(t, err)
			items = append(items, i)
			synctest.Wait() // the first is being synced while the others are gathered
		}
		must(t, l.Wait(t.Context(), l.End()))
		d.Hook(nil)
		must(t, l.Close())
		after.Zero("/log/0000000000000002.log", 0, headerSize+512)
		for _, again := range [][]item{items[:2], items[:3]} {
			want := append(want[:1:1], again...)
			l, all := open(t, after, cfg, 0)
			if len(again) == 2 {
				same(t, all, want)
				next := add(t, l, 2, items[2].bytes)
				if !next.is(items[2]) {
					t.Errorf("appended %v, not %v", next, items[2])
				}
				after = after.Kill()
			} else {
				same(t, all, want)
			}
			must(t, l.Close())
		}
	})
}

func TestSegmentsOfAnotherSize(t *testing.T) {
	d := newDisk(t)
	var want []item
	for i, size := range []int64{minSegment, 3 * minSegment, minSegment, 1, 2*minSegment + 1} {
		cfg := small()
		cfg.SegmentBytes = size
		l, all := open(t, d, cfg, 0)
		same(t, all, want)
		for j := range 10 {
			want = append(want, add(t, l, byte(i), text(j, 15000)))
		}
		must(t, l.Close())
	}
}

func TestRefusesWhatIsNotItsOwn(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	end := add(t, l, 1, []byte("a")).end
	must(t, l.Close())
	other := small()
	other.ID++
	if _, _, _, err := tryOpen(d.Kill(), other, end); !errors.Is(err, ErrDamaged) {
		t.Errorf("another store's: %v", err)
	}
	newer := d.Kill()
	rewriteHeader(t, newer, "/log/"+files(t, d)[0], func(b []byte) { b[8] = version + 1 })
	if _, _, _, err := tryOpen(newer, cfg, 0); !errors.Is(err, vfs.ErrVersion) || !strings.Contains(err.Error(), "format is 4") {
		t.Errorf("a newer release's: %v", err)
	}
	f, err := d.Create("/log/notes.txt")
	must(t, err)
	must(t, f.Close())
	l, _ = open(t, d, cfg, 0)
	must(t, l.Close())
	if !slices.Contains(files(t, d), "notes.txt") {
		t.Error("a file of others is gone")
	}
}

// rewriteHeader changes a header and mends its checksum.
func rewriteHeader(t *testing.T, d *disktest.Disk, name string, fn func(b []byte)) {
	t.Helper()
	f, err := d.Open(name)
	must(t, err)
	b := make([]byte, headerSize)
	_, err = f.ReadAt(b, 0)
	must(t, err)
	fn(b)
	crc := vfs.HeaderSum(b, seed(7))
	b[12], b[13], b[14], b[15] = byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24)
	_, err = f.WriteAt(b, 0)
	must(t, errors.Join(err, f.Close()))
}

func TestErrorOfTheReaderEndsOpening(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	add(t, l, 1, nil)
	must(t, l.Close())
	if _, _, err := Open(d, "/log", cfg, 0, func(Entry) error { return errTest }); !errors.Is(err, errTest) || errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if n := d.Handles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
	if _, _, err := Open(d, "/missing", cfg, 0, nil); err == nil {
		t.Error("opened what is not there")
	}
}

// TestFullDisk fills the disk: what may be refused is, the rest goes on for the space that was
// taken beforehand, and a release makes room without needing any.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		cfg.Spares, cfg.RetryFor = 2, time.Minute
		d.SetSpace(4 * minSegment)
		l, _ := open(t, d, cfg, 0)
		var want []item
		for i := 0; l.Admit(t.Context()) == nil; i++ {
			want = append(want, add(t, l, 1, text(i, 5000)))
			synctest.Wait()
		}
		if err := l.Admit(t.Context()); !errors.Is(err, ErrFull) || !vfs.IsFull(err) {
			t.Fatalf("admit: %v", err)
		}
		small := 0
		for ; small < 2*minSegment-2*headerSize-3000; small += 20 {
			want = append(want, item{})
			i, err := put(l, 2, text(small, 10))
			must(t, err)
			want[len(want)-1] = i
		}
		must(t, l.Wait(t.Context(), l.End()))
		if err := l.Admit(t.Context()); !errors.Is(err, ErrFull) {
			t.Errorf("admit: %v", err)
		}
		l.Release(want[len(want)-1].end)
		synctest.Wait()
		must(t, l.Admit(t.Context()))
		for i := range 20 {
			add(t, l, 1, text(i, 5000))
		}
		must(t, l.Close())

		// Opening does without space, and what ends up without any stops clean.
		l, _ = open(t, d, cfg, want[len(want)-1].end)
		var err error
		for err == nil {
			var i item
			if i, err = put(l, 1, text(1, 5000)); err == nil {
				err = l.Wait(t.Context(), i.end)
			}
		}
		if !errors.Is(err, ErrStopped) || !vfs.IsFull(err) {
			t.Errorf("without any space: %v", err)
		}
		if err := l.Close(); !errors.Is(err, ErrStopped) {
			t.Errorf("close: %v", err)
		}
		killed := d.Kill()
		l, _ = open(t, killed, cfg, want[len(want)-1].end)
		if err := l.Admit(t.Context()); err != nil && !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		must(t, l.Close())
	})
}

// TestSegmentsAreAwaited lets the making of segments fail for a while.
func TestSegmentsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		cfg.RetryFor = time.Minute
		l, _ := open(t, d, cfg, 0)
		good := time.Now().Add(30 * time.Second)
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Create && time.Now().Before(good) {
				return syscall.EMFILE
			}
			return nil
		})
		for i := range 30 {
			add(t, l, 1, text(i, 10000))
		}
		if time.Now().Before(good) {
			t.Error("segments were made of nothing")
		}
		must(t, l.Admit(t.Context()))
		must(t, l.Close())
	})
}

func TestIdleLogSaysThatItIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		l, _ := open(t, d, cfg, 0)
		want := []item{add(t, l, 1, []byte("a"))}
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			time.Sleep(wait)
			_, found, all, err := closing(tryOpen(d.Kill(), cfg, 0))
			must(t, err)
			same(t, all, want)
			if marked := found.Torn == nil; marked != (wait > 0) {
				t.Errorf("after %v: torn is %+v", wait, found.Torn)
			}
		}
		before := d.Calls()
		time.Sleep(time.Hour)
		if n := d.Calls() - before; n != 0 {
			t.Errorf("%d calls of the disk in an idle hour", n)
		}
		want = append(want, add(t, l, 1, []byte("b")))
		must(t, l.Close())
		_, found, all, err := closing(tryOpen(d, cfg, 0))
		must(t, err)
		if same(t, all, want); found.Torn != nil {
			t.Errorf("after Close: torn is %+v", found.Torn)
		}
	})
}

func closing(l *Log, found Found, all []item, err error) (*Log, Found, []item, error) {
	if err == nil {
		err = l.Close()
	}
	return l, found, all, err
}

// TestSyncEndsWhileAWaiterLooks: who finds that a position is not durable, and then looks for
// its flush, may come when that is over.
func TestSyncEndsWhileAWaiterLooks(t *testing.T) {
	l, _ := open(t, newDisk(t), small(), 0)
	i := add(t, l, 1, nil)
	if f, err := l.flushOf(i.end); f != nil || err != nil {
		t.Errorf("the flush of what is durable: %v, %v", f, err)
	}
	must(t, l.Close())
}

// TestSyncsAreShared: callers that can run before a flush begins are part of it.
func TestSyncsAreShared(t *testing.T) {
	const callers = 32
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	add(t, l, 1, nil)
	var syncs atomic.Int32
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync && c.Name == segmentName("/log", 1) {
			syncs.Add(1)
		}
		return nil
	})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			i, err := put(l, 1, nil)
			if err = errors.Join(err, l.Wait(t.Context(), i.end)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := syncs.Load(); n > callers/4 {
		t.Errorf("%d syncs for %d callers", n, callers)
	}
	must(t, l.Close())
}

func TestRaces(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	var mu sync.Mutex
	var want []item
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				b := []byte(fmt.Sprintf("%d %d %s", g, i, bytes.Repeat([]byte("x"), i*10)))
				var end Pos
				var err error
				if i%3 == 0 {
					end, err = l.AppendPrepared(byte(g), b[:1], Prepare(1, b[1:len(b)-1], onHeap), b[len(b)-1:])
				} else {
					end, err = l.Append(byte(g), b[:len(b)/2], b[len(b)/2:])
				}
				if err == nil {
					err = errors.Join(l.Admit(t.Context()), l.Wait(t.Context(), end))
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want = append(want, item{byte(g), b, end - Pos(len(appendEntryHead(nil, 0, len(b)))+len(b)), end})
				mu.Unlock()
				if i%10 == 0 {
					l.Release(0)
					_, _, _ = l.Size(), l.Err(), l.End()
				}
			}
		})
	}
	wg.Wait()
	must(t, l.Close())
	slices.SortFunc(want, func(a, b item) int { return int(a.start) - int(b.start) })
	l, all := open(t, d, cfg, 0)
	same(t, all, want)
	must(t, l.Close())
}

// TestWaitWritten: who waits for no more than the write has his answer while a sync is under way,
// also one that began before he came. What was written is there when the process is killed then,
// and counts as synced when a sync has ended that began behind it.
func TestWaitWritten(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	want := add(t, l, 1, []byte("first"))
	must(t, l.Wait(t.Context(), want.end))
	syncing, goOn := make(chan struct{}), make(chan struct{})
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync && c.Name == segmentName("/log", 1) { // not that of a spare
			syncing <- struct{}{}
			<-goOn
		}
		return nil
	})
	all := []item{want}
	write := func(kind byte, b string) {
		t.Helper()
		i, err := put(l, kind, []byte(b))
		must(t, err)
		must(t, l.WaitWritten(t.Context(), i.end))
		if l.Synced() >= i.end {
			t.Error("it is synced before the sync has ended")
		}
		all = append(all, i)
	}
	write(2, "second")
	<-syncing
	must(t, l.WaitWritten(t.Context(), want.end))
	write(3, "third")
	write(4, "fourth")
	killed, found := open(t, d.Kill(), cfg, 0)
	same(t, found, all)
	must(t, killed.Close())
	goOn <- struct{}{}
	<-syncing // for those behind
	must(t, l.Wait(t.Context(), all[1].end))
	if got := l.Synced(); got != all[1].end {
		t.Errorf("synced up to %d, behind what was written when the sync began, %d", got, all[1].end)
	}
	lost, found := open(t, d.Crash(disktest.Nothing()), cfg, 0)
	same(t, found, all[:2])
	must(t, lost.Close())
	write(5, "fifth")
	d.Hook(nil)
	goOn <- struct{}{}
	must(t, l.Wait(t.Context(), all[4].end))
	must(t, l.Close())
	if err := l.WaitWritten(t.Context(), all[4].end+1); err == nil {
		t.Error("beyond the end")
	}
	l, found = open(t, d.Crash(disktest.Nothing()), cfg, 0)
	same(t, found, all)
	must(t, l.Close())
}

// TestRoomIsGivenBack: the room in which an entry was put together is given back once, when it is written,
// when that was beside a sync, when it is not appended, and at last when the log stopped before.
func TestRoomIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		l, _ := open(t, d, cfg, 0)
		var given [5]atomic.Int32
		prepare := func(i int) *Prepared {
			return Prepare(10, text(i, 100), func(n int) ([]byte, func()) { return make([]byte, n), func() { given[i].Add(1) } })
		}
		add := func(i int) Pos {
			t.Helper()
			end, err := l.AppendPrepared(1, text(i, 10), prepare(i), text(i, 10))
			must(t, err)
			return end
		}
		back := func(want ...int32) {
			t.Helper()
			for i := range given {
				if got := given[i].Load(); got != want[i] {
					t.Errorf("%d was given back %d times, want %d", i, got, want[i])
				}
			}
		}
		goOn, fails := make(chan struct{}), error(nil)
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync && c.Name == segmentName("/log", 1) {
				<-goOn
				return fails
			}
			return nil
		})
		end := add(0)
		synctest.Wait()
		back(0, 0, 0, 0, 0)
		must(t, l.WaitWritten(t.Context(), add(1)))
		back(0, 1, 0, 0, 0)
		goOn <- struct{}{}
		must(t, l.Wait(t.Context(), end))
		back(1, 1, 0, 0, 0)
		prepare(2).Drop()
		synctest.Wait() // until the sync of the one that was written
		add(3)
		fails = errors.New("EIO")
		close(goOn)
		<-l.Failed()
		synctest.Wait()
		if _, err := l.AppendPrepared(1, nil, prepare(4), nil); !errors.Is(err, ErrStopped) {
			t.Errorf("appended to a log that stopped: %v", err)
		}
		if err := l.Close(); !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
		back(1, 1, 1, 1, 1)
	})
}

// TestWaitWrittenGivesUp: what cannot be written beside a sync, for want of room in the segment
// or since the disk hangs, is left by who waits when his context ends, and comes
// behind the sync.
func TestWaitWrittenGivesUp(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, l *Log, d *disktest.Disk) (end Pos, release func()){
		"no room": func(t *testing.T, l *Log, _ *disktest.Disk) (Pos, func()) {
			i, err := put(l, 3, text(3, minSegment))
			must(t, err)
			return i.end, func() {}
		},
		"hangs": func(t *testing.T, l *Log, d *disktest.Disk) (Pos, func()) {
			hang := make(chan struct{})
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Write {
					<-hang
				}
				return nil
			})
			i, err := put(l, 3, []byte("third"))
			must(t, err)
			return i.end, func() { close(hang) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cfg := newDisk(t), small()
				cfg.RetryFor = time.Minute
				l, _ := open(t, d, cfg, 0)
				add(t, l, 1, []byte("first"))
				synctest.Wait() // for the next segment
				goOn := make(chan struct{})
				var syncs atomic.Int32
				d.Hook(func(c disktest.Call) error {
					if c.Op == disktest.Sync {
						if syncs.Add(1) > 1 && c.Name == segmentName("/log", 1) {
							t.Error("a sync beside another")
						}
						<-goOn
						syncs.Add(-1)
					}
					return nil
				})
				second, err := put(l, 2, []byte("second"))
				must(t, err)
				must(t, l.WaitWritten(t.Context(), second.end))
				end, release := then(t, l, d)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := l.WaitWritten(ctx, end); !errors.Is(err, ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				release()
				close(goOn)
				must(t, l.WaitWritten(t.Context(), end))
				must(t, l.Wait(t.Context(), end))
				must(t, l.Close())
			})
		})
	}
}

// TestWriteAheadThatComesTooLate: when the sync ends before anything was written beside it, the
// writer comes first, with what it has taken.
func TestWriteAheadThatComesTooLate(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	all := []item{add(t, l, 1, []byte("first"))}
	appended := func(kind byte, b string) item {
		i, err := put(l, kind, []byte(b))
		must(t, err)
		all = append(all, i)
		return i
	}
	goOn := make(chan struct{})
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync && c.Name == segmentName("/log", 1) {
			<-goOn
		}
		return nil
	})
	second := appended(2, "second")
	must(t, l.WaitWritten(t.Context(), second.end))
	l.writer.mu.Lock()
	third := appended(3, "third")
	if l.hurry(third.end) == nil {
		t.Error("nothing is written beside the sync")
	}
	time.Sleep(5 * time.Millisecond) // so that he stands before the writer, which no event tells
	d.Hook(nil)
	close(goOn)
	for taken := false; !taken; runtime.Gosched() {
		l.mu.Lock()
		taken = l.busy != nil && l.busy.end >= third.end
		l.mu.Unlock()
	}
	fourth := appended(4, "fourth")
	l.writer.mu.Unlock()
	must(t, l.Wait(t.Context(), fourth.end))
	must(t, l.Close())
	l, found := open(t, d, cfg, 0)
	same(t, found, all)
	must(t, l.Close())
}

// TestWaitWrittenByMany: many who wait for writes only, beside many who wait for syncs, in segments
// that come and go.
func TestWaitWrittenByMany(t *testing.T) {
	d, cfg := newDisk(t), small()
	cfg.RetryFor = time.Minute
	l, _ := open(t, d, cfg, 0)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var want []item
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				entry, err := put(l, byte(g), text(g<<16+i, 8+i*g%700))
				wait := l.WaitWritten
				if g%4 == 0 {
					wait = l.Wait
				}
				if err == nil {
					err = wait(t.Context(), entry.end)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want = append(want, entry)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(want, func(a, b item) int { return int(a.start) - int(b.start) })
	killed, all := open(t, d.Kill(), cfg, 0)
	same(t, all, want)
	must(t, killed.Close())
	must(t, l.Close())
	l, all = open(t, d.Crash(disktest.Nothing()), cfg, 0)
	same(t, all, want)
	must(t, l.Close())
}

// TestWaitWrittenFails: what cannot be written fails those who wait for it.
func TestWaitWrittenFails(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Write {
			return syscall.EIO
		}
		return nil
	})
	x, err := l.Append(1, []byte("lost"))
	must(t, err)
	if err := l.WaitWritten(t.Context(), x); !errors.Is(err, ErrStopped) || !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	_ = l.Close()
}
