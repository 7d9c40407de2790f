package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/internal/calls"
)

// far is a file system on which the first directories of paths lie on different disks.
type far struct{ vfs.FS }

func (f far) Link(from, to string) error {
	top := func(name string) string { return strings.Split(filepath.ToSlash(name), "/")[1] }
	if top(from) != top(to) {
		return &linkError{syscall.EXDEV}
	}
	return f.FS.Link(from, to)
}

func on(d *disktest.Disk, isFar bool) vfs.FS {
	if isFar {
		return far{d}
	}
	return d
}

type linkError struct{ error }

func (e *linkError) Unwrap() error { return e.error }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func inQ(key string) engine.Message {
	m := engine.Message{Queue: "q", Key: key, Due: engine.When{In: time.Hour}}
	m.Body = []byte("body of " + key)
	m.MaxAttempts, m.TTR = 20, time.Minute
	return m
}

// pushKeys pushes a message that is due in an hour for each key.
func pushKeys(t testing.TB, e *diskengine.Engine, keys ...string) {
	t.Helper()
	for _, key := range keys {
		r, err := e.Push(t.Context(), []engine.Message{inQ(key)})
		must(t, err)
		must(t, r[0].Err)
	}
}

// whatLives returns the bodies of all messages that live, by key, and the keys that are leased.
func whatLives(t testing.TB, e *diskengine.Engine) (bodies map[string]string, leased []string) {
	t.Helper()
	bodies = make(map[string]string)
	for _, s := range []engine.State{engine.Scheduled, engine.Ready, engine.Leased} {
		for q := (engine.ListQuery{Queue: "q", State: s, Limit: 1000, Body: true}); ; {
			page, err := e.List(t.Context(), q)
			must(t, err)
			for _, m := range page.Messages {
				if _, ok := bodies[m.Key]; ok {
					t.Errorf("%s is there twice", m.Key)
				}
				bodies[m.Key] = string(m.Body)
				if s == engine.Leased {
					leased = append(leased, m.Key)
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	return bodies, leased
}

// restored restores a backup to a new directory and returns what is there.
func restored(t testing.TB, p place, from string) map[string]string {
	t.Helper()
	bodies, err := tryRestored(t, p, from)
	must(t, err)
	return bodies
}

func tryRestored(t testing.TB, p place, from string) (map[string]string, error) {
	t.Helper()
	p.dir = "/restored" + fmt.Sprint(rand.Uint32())
	if _, err := diskengine.RestoreOn(t.Context(), p.fs, from, p.dir); err != nil {
		return nil, err
	}
	p.tune.Between = nil
	e := p.open(t)
	bodies, _ := whatLives(t, e)
	must(t, e.Close())
	if rep, err := verify.Check(p.fs, p.dir, nil); err != nil || !rep.Sound() {
		t.Errorf("what was restored: %v, %+v", err, rep)
	}
	return bodies, nil
}

func newPlace(fs vfs.FS, between func(string)) place {
	tune := small
	tune.OnHeap, tune.Between = true, between
	return place{fs, "/data", diskengine.Config{Logger: quiet, RetryFor: -1}, tune}
}

// deeds is what was done to messages, by key: what was answered before something else began is known.
type deeds struct {
	mu    sync.Mutex
	there map[string]bool // pushed, and nobody has begun to remove it
	gone  map[string]bool // whose removal was answered
}

func (d *deeds) note(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn()
}

func (d *deeds) any() (key string) {
	d.note(func() {
		for key = range d.there {
			delete(d.there, key)
			break
		}
	})
	return key
}

// TestBackupUnderLoad backs up a store, several times to the same place, while messages are pushed,
// acked and cancelled, flushed and merged: what was answered before is in the copy, and nothing comes
// back that was gone.
func TestBackupUnderLoad(t *testing.T) {
	for name, far := range map[string]bool{"linked": false, "far": true} {
		t.Run(name, func(t *testing.T) {
			fs := on(disktest.New(nil), far)
			var flushed, merged atomic.Int64
			p := newPlace(fs, func(where string) {
				switch where {
				case "install":
					flushed.Add(1)
				case "merged":
					merged.Add(1)
				}
			})
			e := p.open(t)
			d := deeds{there: map[string]bool{}, gone: map[string]bool{}}
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			task := func(fn func(n int) error) {
				group.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						if err := fn(n); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			for k := range 2 {
				task(func(n int) error { // pushes, some of them due
					m := inQ(fmt.Sprintf("k%d-%d", k, n))
					if n%3 == 0 {
						m.Due = engine.When{}
					}
					_, err := e.Push(t.Context(), []engine.Message{m})
					if err == nil && n%3 != 0 {
						d.note(func() { d.there[m.Key] = true })
					}
					return err
				})
			}
			task(func(int) error { // acks
				g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, Remote: true, TTR: time.Minute}})
				if err != nil {
					return err
				}
				for _, l := range g.Queues[0].Messages {
					if s, err := e.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: engine.Ack}}); err != nil || s[0].Err != nil {
						return errors.Join(err, s[0].Err)
					}
					d.note(func() { d.gone[l.Key] = true })
				}
				return nil
			})
			task(func(n int) error { // cancels
				key := d.any()
				if key == "" || n%2 == 0 {
					return nil
				}
				_, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: key}})
				d.note(func() { d.gone[key] = true })
				return err
			})
			for range 4 {
				for before := flushed.Load(); flushed.Load() < before+3; {
					pushKeys(t, e, fmt.Sprint("w", rand.Uint64()))
				}
				var there, gone map[string]bool
				d.note(func() { there, gone = maps.Clone(d.there), maps.Clone(d.gone) })
				b, err := e.Backup(t.Context(), "/backup")
				must(t, err)
				d.note(func() {
					maps.DeleteFunc(there, func(key string, _ bool) bool { return !d.there[key] })
				})
				if rep, err := backup.Check(fs, "/backup", func(int) error { return nil }); err != nil || !rep.Sound() || b.Files == 0 || b.Bytes < b.Copied {
					t.Fatalf("%+v: %v, %+v", b, err, rep)
				}
				has := restored(t, p, "/backup")
				for key := range there {
					if has[key] != "body of "+key {
						t.Fatalf("%s was pushed before, and is lost: %q", key, has[key])
					}
				}
				for key := range gone {
					if _, ok := has[key]; ok {
						t.Fatalf("%s was gone before, and is back", key)
					}
				}
			}
			stop()
			group.Wait()
			must(t, e.Close())
			if rep, err := verify.Check(fs, "/data", nil); err != nil || !rep.Sound() || len(rep.Leftovers) > 0 {
				t.Errorf("the source: %v, %+v", err, rep)
			}
			if merged.Load() == 0 || len(d.gone) == 0 {
				t.Errorf("%d merges, %d messages were removed", merged.Load(), len(d.gone))
			}
		})
	}
}

// TestBackupCopiesWhatIsNew: sstables that the backup before has, or that can be linked, are not copied.
func TestBackupCopiesWhatIsNew(t *testing.T) {
	for name, far := range map[string]bool{"linked": false, "far": true} {
		t.Run(name, func(t *testing.T) {
			d := disktest.New(nil)
			fs := on(d, far)
			p := newPlace(fs, nil)
			p.tune = diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true, MergeTables: 100}
			e := p.open(t)
			made := 0 // sstables that were copied
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Create && strings.HasPrefix(c.Name, "/backup") && strings.HasSuffix(c.Name, ".run") {
					made++
				}
				return nil
			})
			for i := range 4 {
				if i < 3 {
					for k := range 300 {
						pushKeys(t, e, fmt.Sprintf("k%d-%d", i, k))
					}
				}
				must(t, e.Flush(t.Context()))
				made = 0
				b, err := e.Backup(t.Context(), "/backup")
				must(t, err)
				if want := map[bool]int{true: 1}[far && i < 3]; made != want {
					t.Errorf("backup %d: %d sstables were copied, want %d", i, made, want)
				}
				const run, log = 10_000, 64 << 10 // an sstable is longer, the log at most a segment
				if b.Bytes < min(int64(i)+1, 3)*run || b.Copied > log+int64(made)*2*run || b.Copied > b.Bytes {
					t.Errorf("backup %d: %+v", i, b)
				}
				names, err := fs.List("/backup")
				must(t, err)
				if want := []string{fmt.Sprintf("%016x", i+1), "BACKUP", "LOCK", "sstables"}; !slices.Equal(names, want) {
					t.Errorf("after backup %d: %v", i, names)
				}
			}
			d.Hook(nil)
			if has := restored(t, p, "/backup"); len(has) != 900 {
				t.Errorf("%d messages", len(has))
			}
			must(t, e.Close())
		})
	}
}

// TestBackupKeepsLeasesOfOthers: leases of other processes are in the copy, and their tokens settle;
// those of this one have ended.
func TestBackupKeepsLeasesOfOthers(t *testing.T) {
	p := newPlace(disktest.New(nil), nil)
	clock := enginetest.NewClock()
	p.cfg.Now = clock.Now
	e := p.open(t)
	for _, key := range []string{"remote", "own"} {
		m := inQ(key)
		m.Due = engine.When{}
		_, err := e.Push(t.Context(), []engine.Message{m})
		must(t, err)
	}
	var tokens []string
	for _, remote := range []bool{true, false} {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, Remote: remote, TTR: time.Minute}})
		must(t, err)
		tokens = append(tokens, g.Queues[0].Messages[0].Token)
	}
	_, err := e.Backup(t.Context(), "/backup")
	must(t, err)
	must(t, e.Close())
	_, err = diskengine.RestoreOn(t.Context(), p.fs, "/backup", "/restored")
	must(t, err)
	p.dir = "/restored"
	e = p.open(t)
	if bodies, leased := whatLives(t, e); len(bodies) != 2 || !slices.Equal(leased, []string{"remote"}) {
		t.Errorf("%v, leased %v", bodies, leased)
	}
	s, err := e.Settle(t.Context(), []engine.Settlement{{Token: tokens[0], Do: engine.Ack}})
	must(t, err)
	if bodies, _ := whatLives(t, e); s[0].Err != nil || len(bodies) != 1 {
		t.Errorf("the lease of another process: %v, %v", s[0].Err, bodies)
	}
	must(t, e.Close())
}

// TestBackupPinsWhatItCopies: flushes, merges and releases go on while a backup is made, and take
// nothing away from it; afterwards nothing is kept. Another backup is refused meanwhile.
func TestBackupPinsWhatItCopies(t *testing.T) {
	var inside atomic.Pointer[func()]
	d := disktest.New(nil)
	p := newPlace(far{d}, func(where string) {
		if where != "backup" {
			return
		}
		if fn := inside.Swap(nil); fn != nil {
			(*fn)()
		}
	})
	p.tune.SpanBytes = 1 << 30
	e := p.open(t)
	for k := range 40 {
		pushKeys(t, e, fmt.Sprint("k", k))
		if k%10 == 9 {
			must(t, e.Flush(t.Context()))
		}
	}
	_, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k0"}, {Queue: "q", Key: "k15"}})
	must(t, err)
	pushKeys(t, e, "last")
	met := false
	fn := func() {
		met = true
		pushKeys(t, e, "later")
		must(t, e.Flush(t.Context()))
		must(t, e.Merge(t.Context()))
		_, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k1"}})
		must(t, err)
		pushKeys(t, e, "latest")
		must(t, e.Flush(t.Context()))
		must(t, e.Merge(t.Context()))
		if _, err := e.Backup(t.Context(), "/other"); !errors.Is(err, engine.ErrLimit) {
			t.Errorf("a backup within another one: %v", err)
		}
	}
	inside.Store(&fn)
	_, err = e.Backup(t.Context(), "/backup")
	must(t, err)
	has := restored(t, p, "/backup")
	if _, ok := has["k15"]; !met || len(has) < 39 || ok || has["last"] == "" || has["k1"] == "" {
		t.Errorf("%v, %d messages, %v", met, len(has), has)
	}
	names, err := d.List("/data/runs")
	must(t, err)
	if n := len(slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".run") })); n != 1 {
		t.Errorf("%d sstables are there after a merge of all", n)
	}
	must(t, e.Close())
	if rep, err := verify.Check(d, "/data", nil); err != nil || !rep.Sound() || len(rep.Leftovers) > 0 {
		t.Errorf("the source: %v, %+v", err, rep)
	}
}

// TestBackupEnds: with its caller, and with the engine.
func TestBackupEnds(t *testing.T) {
	var inside atomic.Pointer[func()]
	p := newPlace(disktest.New(nil), func(where string) {
		if fn := inside.Load(); where == "backup" && fn != nil {
			(*fn)()
		}
	})
	e := p.open(t)
	pushKeys(t, e, "k")
	ctx, cancel := context.WithCancel(t.Context())
	fn := func() { cancel() }
	inside.Store(&fn)
	if _, err := e.Backup(ctx, "/backup"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	closed := make(chan error)
	var once sync.Once
	fn = func() {
		once.Do(func() {
			go func() { closed <- e.Close() }()
			for !errors.Is(func() error { _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"}); return err }(), engine.ErrClosed) {
			}
		})
	}
	for { // the one that was left may be under way
		_, err := e.Backup(t.Context(), "/backup")
		if errors.Is(err, engine.ErrLimit) {
			continue
		}
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		break
	}
	must(t, <-closed)
	if names, err := p.fs.List("/backup"); err != nil || !slices.Equal(names, []string{"LOCK"}) {
		t.Errorf("left %v, %v", names, err)
	}
}

// TestBackupOnceTheDiskAnswers refuses one while as many calls as may be wait for the disk whose callers have
// left, and makes the next.
func TestBackupOnceTheDiskAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		p := newPlace(d, nil)
		e := p.open(t)
		pushKeys(t, e, "k")
		must(t, e.Flush(t.Context()))
		gate := make(chan struct{})
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read {
				<-gate
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var left sync.WaitGroup
		for range calls.MaxLeft {
			left.Go(func() {
				if _, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "k"}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a look-up: %v", err)
				}
			})
		}
		left.Wait()
		if _, err := e.Backup(t.Context(), "/backup"); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("while the disk does not answer: %v", err)
		}
		close(gate)
		synctest.Wait()
		if _, err := e.Backup(t.Context(), "/backup"); err != nil {
			t.Error(err)
		}
		must(t, e.Close())
	})
}

// TestRestoredGivesNoNumberAgain: what died while a backup was made may have stood in an sstable that is not in it.
// No sstable of the store that is made of the backup has its number: another message would be taken for that one.
func TestRestoredGivesNoNumberAgain(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	p.tune.SpanBytes, p.tune.MergeTables = 1<<30, 1000
	e := p.open(t)
	for _, half := range []string{"a", "b"} {
		for k := range 5 {
			pushKeys(t, e, fmt.Sprint(half, k))
		}
		must(t, e.Flush(t.Context()))
	}
	died := false
	d.Hook(func(c disktest.Call) error {
		if died || c.Op != disktest.Mkdir || filepath.Base(c.Name) != "log" {
			return nil
		}
		died = true
		must(t, e.Merge(t.Context()))
		errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "a1"}})
		must(t, errors.Join(err, errs[0]))
		return nil
	})
	_, err := e.Backup(t.Context(), "/backup")
	must(t, errors.Join(err, e.Close()))
	d.Hook(nil)
	if !died {
		t.Fatal("nobody died meanwhile")
	}
	p.dir = "/restored"
	_, err = diskengine.RestoreOn(t.Context(), d, "/backup", p.dir)
	must(t, err)
	e = p.open(t)
	must(t, errors.Join(e.Merge(t.Context()), e.Close()))
	e = p.open(t) // which replays the log once more
	has, _ := whatLives(t, e)
	if _, back := has["a1"]; back || len(has) != 9 {
		t.Errorf("%d live, want 9: %v", len(has), slices.Sorted(maps.Keys(has)))
	}
	must(t, e.Close())
	if rep, err := verify.Check(d, p.dir, nil); err != nil || !rep.Sound() {
		t.Errorf("%v, %+v", err, rep)
	}
}

// TestBackupPowerLoss lets the power go at each call by which backups change the disk: the source is
// as it was, and the backup whole, the one before or the new one, or refused when there was none.
func TestBackupPowerLoss(t *testing.T) {
	for name, far := range map[string]bool{"linked": false, "far": true} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			d := disktest.New(&disktest.Config{Stale: true})
			p := newPlace(on(d, far), nil)
			p.tune.SpanBytes = 1 << 30 // nothing but the backup changes the disk
			e := p.open(t)
			whole := -1 // messages in the last backup that was answered; -1: there was none
			losses, refused, newer := 0, 0, 0
			for round := range disktest.Thorough(2, 6) {
				for k := range 30 {
					pushKeys(t, e, fmt.Sprintf("k%d-%d", round, k))
					if k == 10 || k == 20 {
						must(t, e.Flush(t.Context()))
					}
				}
				_, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: fmt.Sprintf("k%d-1", round)}})
				must(t, err)
				holdNow, _ := whatLives(t, e)
				now := len(holdNow)
				d.Hook(func(c disktest.Call) error {
					if !c.Changes() || !strings.HasPrefix(c.Name, "/backup") {
						return nil
					}
					for _, chooser := range []disktest.Chooser{disktest.Seeded(seed + uint64(losses)), [...]disktest.Chooser{disktest.Nothing(), disktest.Everything()}[losses/2%2]} {
						after := d.Crash(chooser)
						losses++
						if rep, err := verify.Check(after, "/data", nil); err != nil || !rep.Sound() {
							t.Errorf("seed %d: the source after %+v: %v, %+v", seed, c, err, rep)
						}
						q := p
						q.fs = on(after, far)
						has, err := tryRestored(t, q, "/backup")
						if err != nil {
							refused++
							if whole >= 0 || !errors.Is(err, engine.ErrInvalid) {
								t.Errorf("seed %d: round %d, at %+v: %v", seed, round, c, err)
							}
							continue
						}
						switch n := len(has); n {
						case now:
							newer++
						case whole:
						default:
							t.Errorf("seed %d: round %d, at %+v: %d messages, not %d or %d", seed, round, c, n, whole, now)
						}
					}
					return nil
				})
				_, err = e.Backup(t.Context(), "/backup")
				d.Hook(nil)
				must(t, err)
				if n := len(restored(t, place{p.fs, "", p.cfg, p.tune}, "/backup")); n != now {
					t.Errorf("%d messages, want %d", n, now)
				}
				sure := p
				sure.fs = on(d.Crash(disktest.Nothing()), far)
				if n := len(restored(t, sure, "/backup")); n != now {
					t.Errorf("%d messages after the power went, want %d", n, now)
				}
				whole = now
			}
			must(t, e.Close())
			if losses < 30 || refused == 0 || newer == 0 {
				t.Errorf("%d losses, %d refused, %d new ones", losses, refused, newer)
			}
		})
	}
}

// TestBackupFaults lets each call on the target fail: the backup before stays, the store goes on, and
// the next backup is whole.
func TestBackupFaults(t *testing.T) {
	for name, fault := range map[string]error{"full": syscall.ENOSPC, "broken": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			d := disktest.New(nil)
			p := newPlace(far{d}, nil)
			p.tune.SpanBytes = 1 << 30
			e := p.open(t)
			before, faults := 0, 0
			for k := 0; ; k++ {
				pushKeys(t, e, fmt.Sprint("k", k))
				if k%8 == 0 {
					must(t, e.Flush(t.Context()))
				}
				n := 0
				hit := ""
				d.Hook(func(c disktest.Call) error {
					if c.Op == disktest.Link || !strings.HasPrefix(c.Name, "/backup") || !c.Changes() || c.Op == disktest.Remove {
						return nil
					}
					if n++; n == k {
						hit = c.Op
						return fault
					}
					return nil
				})
				_, err := e.Backup(t.Context(), "/backup")
				d.Hook(nil)
				if hit == "" {
					must(t, err)
					if before = k + 1; k > 0 {
						break
					}
				} else if faults++; err == nil && hit == disktest.SyncDir && len(restored(t, p, "/backup")) == k+1 {
					// what was not needed any more could not be removed
				} else if err == nil || errors.Is(err, engine.ErrNoSpace) != (fault == syscall.ENOSPC) || !errors.Is(err, fault) {
					t.Fatalf("%s, call %d: %v", hit, k, err)
				}
				if has := len(restored(t, p, "/backup")); has != before && (has != k+1 || hit != disktest.SyncDir) {
					t.Fatalf("%s, call %d: %d messages, %d before", hit, k, has, before)
				} else {
					before = has
				}
			}
			if faults < 10 {
				t.Errorf("%d faults", faults)
			}
			if has := len(restored(t, p, "/backup")); has != before {
				t.Errorf("%d messages, want %d", has, before)
			}
			if names, _ := d.List("/backup"); len(names) != 4 {
				t.Errorf("left %v", names)
			}
			must(t, e.Close())
		})
	}
}

// TestBackupRefuses what is not its own, and Restore what is no backup or not empty.
func TestBackupRefuses(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	e := p.open(t)
	pushKeys(t, e, "k")
	foreign := func(name string) {
		t.Helper()
		must(t, vfs.MkdirAll(d, filepath.Dir(name)))
		f, err := d.Create(name)
		must(t, err)
		must(t, f.Close())
	}
	foreign("/photos/a.jpg")
	foreign("/odd/BACKUP")
	foreign("/full/x")
	other := p
	other.dir = "/other"
	o := other.open(t)
	_, err := o.Backup(t.Context(), "/others")
	must(t, err)
	must(t, o.Close())
	for dir, want := range map[string]string{
		"/photos": "holds a.jpg (name another directory)",
		"/data":   "name another directory",
		"/others": "a backup of another store",
		"/odd":    "name another directory, or remove this backup",
	} {
		_, err := e.Backup(t.Context(), dir)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	names, err := d.List("/photos")
	if must(t, err); !slices.Equal(names, []string{"a.jpg"}) {
		t.Errorf("made %v", names)
	}
	_, err = e.Backup(t.Context(), "/backup")
	must(t, err)
	for _, c := range []struct {
		from, to, want string
		is             error
	}{
		{"/backup", "/full", "is not empty: /full holds x", engine.ErrInvalid},
		{"/backup", "/data", "is not empty", engine.ErrInvalid},
		{"/photos", "/new", "this is no backup", engine.ErrInvalid},
		{"/missing", "/new", "/missing", engine.ErrInvalid},
		{"/data", "/new", "this is no backup", engine.ErrInvalid},
	} {
		_, err := diskengine.RestoreOn(t.Context(), d, c.from, c.to)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
	if _, err := d.List("/new"); err == nil {
		t.Error("a directory was made for nothing")
	}
	must(t, e.Close())
}

// TestBackupToADiskThatDoesNotAnswer: the store, on another one, is as ready as it was.
func TestBackupToADiskThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		p := newPlace(d, nil)
		e := p.open(t)
		pushKeys(t, e, "a")
		answers := make(chan struct{})
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync && strings.HasPrefix(c.Name, "/backup") {
				<-answers
			}
			return nil
		})
		made := make(chan error)
		go func() {
			_, err := e.Backup(t.Context(), "/backup")
			made <- err
		}()
		time.Sleep(time.Minute)
		pushKeys(t, e, "b")
		must(t, e.Ready(t.Context()))
		close(answers)
		must(t, errors.Join(<-made, e.Close()))
	})
}

// TestBackupOfAnOlderStore: a store that was restored does not overwrite a backup that goes on where it does
// not, as one of the store from which that backup came would.
func TestBackupOfAnOlderStore(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	e := p.open(t)
	pushKeys(t, e, "a")
	_, err := e.Backup(t.Context(), "/backup")
	must(t, err)
	_, err = diskengine.RestoreOn(t.Context(), d, "/backup", "/restored")
	must(t, err)
	pushKeys(t, e, "b")
	_, err = e.Backup(t.Context(), "/backup")
	must(t, err)
	want := restored(t, p, "/backup")
	again := p
	again.dir = "/restored"
	r := again.open(t)
	_, err = r.Backup(t.Context(), "/backup")
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "is newer than this store") {
		t.Errorf("a backup of the older store: %v", err)
	}
	if _, err := r.Backup(t.Context(), "/drill"); err != nil {
		t.Errorf("in another directory: %v", err)
	}
	must(t, r.Close())
	if got := restored(t, p, "/backup"); !maps.Equal(got, want) {
		t.Errorf("the backup holds %v, not %v", got, want)
	}
	_, err = e.Backup(t.Context(), "/backup")
	must(t, err)
	must(t, e.Close())
	again.dir = "/backup"
	_, err = diskengine.OpenOn(again.fs, again.dir, &again.cfg, again.tune)
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "/backup is a backup; make a store of it with tarry restore /backup DIR") {
		t.Errorf("a backup is opened: %v", err)
	}
}

// TestRestoreCutOff: what is left of a restore that was cut off is not opened as an empty store.
func TestRestoreCutOff(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	e := p.open(t)
	pushKeys(t, e, "a", "b")
	must(t, e.Flush(t.Context()))
	pushKeys(t, e, "c")
	_, err := e.Backup(t.Context(), "/backup")
	must(t, err)
	must(t, e.Close())
	p.dir = "/new"
	cut := 0
	d.Hook(func(c disktest.Call) error {
		if !c.Changes() || !strings.HasPrefix(c.Name, "/new/") {
			return nil
		}
		for _, chooser := range []disktest.Chooser{disktest.Nothing(), disktest.Everything(), disktest.Seeded(uint64(cut))} {
			after := d.Crash(chooser)
			names, err := after.List("/new")
			if err != nil || len(names) == 0 {
				continue // nothing was begun
			}
			cut++
			if _, err := diskengine.OpenOn(after, "/new", &p.cfg, p.tune); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "RESTORING: a restore or salvage to it was cut off") {
				t.Errorf("at %+v: %v", c, err)
			}
		}
		return nil
	})
	_, err = diskengine.RestoreOn(t.Context(), d, "/backup", "/new")
	d.Hook(nil)
	must(t, err)
	if cut < 10 {
		t.Errorf("%d were cut off", cut)
	}
	e = p.open(t)
	if has, _ := whatLives(t, e); len(has) != 3 {
		t.Errorf("%d messages are restored", len(has))
	}
	must(t, e.Close())
}

// TestSalvageCutOff: nor what is left of a salvage.
func TestSalvageCutOff(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	p.tune.SpanBytes = 1 << 30
	e := p.open(t)
	for k := range 60 {
		pushKeys(t, e, fmt.Sprint("k", k))
	}
	must(t, e.Flush(t.Context()))
	_, err := e.Backup(t.Context(), "/backup")
	must(t, errors.Join(err, e.Close()))
	for _, file := range filesOf(t, d, "/backup") {
		if strings.HasSuffix(file, ".run") {
			d.Flip(file, 100, 1)
		}
	}
	killed, gone := errors.New("killed"), false
	d.Hook(func(c disktest.Call) error {
		if gone = gone || c.Op == disktest.Create && strings.HasPrefix(c.Name, "/new/runs/"); gone {
			return killed
		}
		return nil
	})
	if _, err := diskengine.SalvageOn(t.Context(), d, "/backup", "/new"); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	d.Hook(nil)
	d = d.Kill()
	if _, err := diskengine.OpenOn(d, "/new", &p.cfg, p.tune); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "RESTORING") {
		t.Error(err)
	}
	// Nor is it a damaged store, of which less than of the backup would be left.
	if _, err := diskengine.SalvageOn(t.Context(), d, "/new", "/newer"); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "remove the directory") {
		t.Error(err)
	}
	if _, err := d.List("/newer"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("/newer was made: %v", err)
	}
}

// TestNewStoreOnAFullDisk: a restore and a salvage say that what they wrote is to be removed.
func TestNewStoreOnAFullDisk(t *testing.T) {
	d := disktest.New(nil)
	e := newPlace(d, nil).open(t)
	pushKeys(t, e, "a")
	_, err := e.Backup(t.Context(), "/backup")
	must(t, errors.Join(err, e.Close()))
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Write && strings.HasPrefix(c.Name, "/new/") {
			return syscall.ENOSPC
		}
		return nil
	})
	for name, do := range map[string]func() error{
		"restore":            func() error { _, err := diskengine.RestoreOn(t.Context(), d, "/backup", "/new/r"); return err },
		"salvage":            func() error { _, err := diskengine.SalvageOn(t.Context(), d, "/backup", "/new/b"); return err },
		"salvage of a store": func() error { _, err := diskengine.SalvageOn(t.Context(), d, "/data", "/new/s"); return err },
	} {
		if err := do(); !errors.Is(err, engine.ErrNoSpace) || !strings.Contains(err.Error(), "remove the new directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRestoreRefusesDamage flips bits in all files of a backup: Restore refuses it, or nobody reads
// that byte and all is there.
func TestRestoreRefusesDamage(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 5))
	d := disktest.New(nil)
	p := newPlace(far{d}, nil)
	p.tune.SpanBytes = 1 << 30
	e := p.open(t)
	for k := range 60 {
		pushKeys(t, e, fmt.Sprint("k", k))
		if k == 30 {
			must(t, e.Flush(t.Context()))
		}
	}
	_, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k3"}})
	must(t, err)
	pushKeys(t, e, "flushed")
	must(t, e.Flush(t.Context()))
	pushKeys(t, e, "last")
	_, err = e.Backup(t.Context(), "/backup")
	must(t, err)
	must(t, e.Close())
	want := restored(t, p, "/backup")
	var files []string
	for _, dir := range []string{"", "1", "1/log", "sstables"} {
		dir = strings.Replace(dir, "1", "0000000000000001", 1)
		names, err := d.List(filepath.Join("/backup", dir))
		must(t, err)
		for _, name := range names {
			if strings.Contains(name, ".") || name == "MANIFEST" || name == "BACKUP" {
				files = append(files, filepath.Join("/backup", dir, name))
			}
		}
	}
	refused := map[string]int{}
	for range 200 {
		name := files[rng.IntN(len(files))]
		spoiled := d.Kill()
		f, err := spoiled.Open(name)
		must(t, err)
		size, err := f.Size()
		must(t, errors.Join(err, f.Close()))
		what := "removed"
		if rng.IntN(10) == 0 {
			must(t, spoiled.Remove(name))
		} else {
			off := rng.Int64N(size)
			what = fmt.Sprint("bits at ", off)
			spoiled.Flip(name, off, 1<<rng.IntN(8))
		}
		p.fs = far{spoiled}
		_, err = diskengine.RestoreOn(t.Context(), p.fs, "/backup", "/new")
		if err == nil {
			if has := restored(t, p, "/backup"); !maps.Equal(has, want) {
				t.Fatalf("seed %d: %s, %s: taken for sound, with %d messages of %d", seed, name, what, len(has), len(want))
			}
			continue
		}
		refused[filepath.Ext(name)]++
		if !errors.Is(err, engine.ErrDamaged) && !errors.Is(err, engine.ErrInvalid) || strings.Contains(err.Error(), "\n") {
			t.Errorf("seed %d: %s, %s: %v", seed, name, what, err)
		}
		if _, err := spoiled.List("/new"); err == nil {
			t.Errorf("seed %d: %s, %s: refused, and something was made", seed, name, what)
		}
	}
	for _, ext := range []string{"", ".log", ".run"} {
		if refused[ext] == 0 {
			t.Errorf("seed %d: no damage in a file %q was refused: %v", seed, ext, refused)
		}
	}
}

// TestBackupOfADamagedStore spoils what the backup before has not yet, here and there: the next one fails and
// says what to do, and the one before stays. Neither is a first one put in force.
func TestBackupOfADamagedStore(t *testing.T) {
	for name, far := range map[string]bool{"linked": false, "far": true} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 6))
			d := disktest.New(nil)
			p := newPlace(on(d, far), nil)
			p.tune.SpanBytes = 1 << 30
			e := p.open(t)
			for k := range 20 {
				pushKeys(t, e, fmt.Sprint("a", k))
			}
			must(t, e.Flush(t.Context()))
			_, err := e.Backup(t.Context(), "/backup")
			must(t, err)
			had, err := d.List("/data/runs")
			must(t, err)
			before := restored(t, p, "/backup")
			for k := range 20 {
				pushKeys(t, e, fmt.Sprint("b", k))
			}
			_, err = e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "a3"}})
			must(t, err)
			must(t, e.Flush(t.Context()))
			pushKeys(t, e, "last")
			now, err := d.List("/data/runs")
			must(t, err)
			spoil := []string{}
			for _, name := range now {
				if !slices.Contains(had, name) {
					spoil = append(spoil, "/data/runs/"+name)
				}
			}
			refused := map[string]int{}
			spoilt := func(name string, off int64, undo func()) {
				t.Helper()
				for _, dir := range []string{"/backup", "/first"} {
					_, err := e.Backup(t.Context(), dir)
					if err == nil {
						undo()
						t.Fatalf("seed %d: %s is spoilt at %d: taken for sound", seed, name, off)
					}
					refused[filepath.Ext(name)]++
					for _, want := range []string{name, "tarry check /data says"} {
						if !errors.Is(err, engine.ErrDamaged) || errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
							t.Errorf("seed %d: %s is spoilt at %d: %v", seed, name, off, err)
						}
					}
				}
				if names, _ := d.List("/backup"); !slices.Equal(names, []string{fmt.Sprintf("%016x", 1), "BACKUP", "LOCK", "sstables"}) {
					t.Errorf("left %v", names)
				}
				if names, _ := d.List("/first"); !slices.Equal(names, []string{"LOCK"}) {
					t.Errorf("left %v", names)
				}
			}
			for _, name := range spoil {
				f, err := d.Open(name)
				must(t, err)
				size, err := f.Size()
				must(t, errors.Join(err, f.Close()))
				for range 10 {
					off, bit := rng.Int64N(min(size, 200)), byte(1)<<rng.IntN(8) // where no gap is
					undo := func() { d.Flip(name, off, bit) }
					undo()
					spoilt(name, off, undo)
					undo()
				}
			}
			d.Flip("/data/log/0000000000000001.log", 4096+40, 1)
			spoilt("/data/log/0000000000000001.log", 4096+40, func() {})
			if has := restored(t, p, "/backup"); !maps.Equal(has, before) {
				t.Errorf("seed %d: %d messages, %d before", seed, len(has), len(before))
			}
			d.Flip("/data/log/0000000000000001.log", 4096+40, 1)
			read := 0
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && slices.Contains(had, filepath.Base(c.Name)) {
					read++
				}
				return nil
			})
			_, err = e.Backup(t.Context(), "/backup")
			d.Hook(nil)
			must(t, err)
			if read > 3*len(had) { // the first bytes, of the new name too
				t.Errorf("what the backup has was read %d times", read)
			}
			if has := restored(t, p, "/backup"); len(has) != 40 || has["last"] == "" {
				t.Errorf("%d messages once it is mended", len(has))
			}
			for _, ext := range []string{".run", ".log"} {
				if refused[ext] == 0 {
					t.Errorf("no file %q was spoilt: %v", ext, spoil)
				}
			}
			must(t, e.Close())
		})
	}
}

// TestBackupOfAStoreThatWentAnotherWay: a store that was restored, and went on for longer than the one it was
// restored from, does not take the place of a backup that has sstables of that one.
func TestBackupOfAStoreThatWentAnotherWay(t *testing.T) {
	for name, far := range map[string]bool{"linked": false, "far": true} {
		t.Run(name, func(t *testing.T) {
			d := disktest.New(nil)
			p := newPlace(on(d, far), nil)
			p.tune.SpanBytes, p.tune.MergeTables = 1<<30, 1000 // no sstable goes but by the test
			e := p.open(t)
			pushKeys(t, e, "a")
			must(t, e.Flush(t.Context()))
			_, err := e.Backup(t.Context(), "/backup")
			must(t, err)
			_, err = diskengine.RestoreOn(t.Context(), p.fs, "/backup", "/restored")
			must(t, err)
			pushKeys(t, e, "b")
			must(t, e.Flush(t.Context()))
			_, err = e.Backup(t.Context(), "/backup")
			must(t, errors.Join(err, e.Close()))
			want := restored(t, p, "/backup")
			other := p
			other.dir = "/restored"
			r := other.open(t)
			for k := range 50 {
				pushKeys(t, r, fmt.Sprint("c", k))
			}
			must(t, r.Flush(t.Context()))
			_, err = r.Backup(t.Context(), "/backup")
			if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "is newer than this store") {
				t.Error(err)
			}
			must(t, r.Close())
			if got := restored(t, p, "/backup"); !maps.Equal(got, want) {
				t.Errorf("the backup has %v, had %v", got, want)
			}
		})
	}
}

// TestBackupOfWhatCannotBeCopied: a copy that differs from its original is no fault of the store,
// and the backup before stays.
func TestBackupOfWhatCannotBeCopied(t *testing.T) {
	for _, name := range []string{".run", "MANIFEST"} {
		t.Run(name, func(t *testing.T) {
			d := disktest.New(nil)
			p := newPlace(far{d}, nil)
			e := p.open(t)
			pushKeys(t, e, "a")
			must(t, e.Flush(t.Context()))
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Sync && strings.HasPrefix(c.Name, "/backup") && strings.Contains(filepath.Base(c.Name), name) {
					d.Flip(c.Name, 100, 1)
				}
				return nil
			})
			_, err := e.Backup(t.Context(), "/backup")
			d.Hook(nil)
			if !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "see to the disk of /backup") {
				t.Error(err)
			}
			_, err = e.Backup(t.Context(), "/backup")
			must(t, errors.Join(err, e.Close()))
		})
	}
}

// TestSalvage spoils a backup, each of its files in turn, or removes that: it is not restored, but what can be
// read of it is, what is lost is told, and the backup stays as it is.
func TestSalvage(t *testing.T) {
	for name, far := range map[string]bool{"linked": false, "far": true} {
		if far && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sound := disktest.New(nil)
			p := newPlace(on(sound, far), nil)
			p.tune.SpanBytes, p.tune.MergeTables = 1<<30, 1000 // several sstables stay
			e := p.open(t)
			for k := range 60 {
				pushKeys(t, e, fmt.Sprint("k", k))
				if k%20 == 0 {
					must(t, e.Flush(t.Context()))
				}
			}
			_, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k3"}})
			must(t, errors.Join(err, e.Flush(t.Context())))
			pushKeys(t, e, "last")
			_, err = e.Backup(t.Context(), "/backup")
			must(t, errors.Join(err, e.Close()))
			want := restored(t, p, "/backup")
			for _, file := range filesOf(t, sound, "/backup") {
				for _, how := range []string{"spoilt", "removed"} {
					d := sound.Kill()
					if how == "removed" {
						must(t, d.Remove(file))
					} else {
						off := map[string]int64{".log": 4096 + 40, ".run": 100}[filepath.Ext(file)]
						d.Flip(file, max(off, 20), 1)
					}
					was := map[string]string{}
					for _, name := range filesOf(t, d, "/backup") {
						was[name] = contentsOf(t, d, name)
					}
					p.fs, p.dir = on(d, far), "/new"
					if _, err := diskengine.RestoreOn(t.Context(), p.fs, "/backup", p.dir); err == nil {
						t.Fatalf("%s, %s: taken for sound", file, how)
					}
					saved, err := diskengine.SalvageOn(t.Context(), p.fs, "/backup", p.dir)
					if err != nil {
						t.Fatalf("%s, %s: %v", file, how, err)
					}
					copied := filepath.Base(file) == "MANIFEST" && how == "spoilt" // the other copy of its head is read
					whole := filepath.Base(file) == "BACKUP" || copied
					if copied != (len(saved.Losses)+len(saved.Notes) == 0) || !saved.After.Sound() {
						t.Errorf("%s, %s: %+v", file, how, saved)
					}
					for name, is := range was {
						if contentsOf(t, d, name) != is {
							t.Errorf("%s, %s: %s is changed", file, how, name)
						}
					}
					e := p.open(t)
					has, _ := whatLives(t, e)
					must(t, e.Close())
					if len(has) < 30 && filepath.Ext(file) != ".log" || whole && !maps.Equal(has, want) {
						t.Errorf("%s, %s: %d messages of %d", file, how, len(has), len(want))
					}
					if rep, err := verify.Check(p.fs, p.dir, nil); err != nil || !rep.Sound() {
						t.Errorf("%s, %s: %v, %+v", file, how, err, rep)
					}
				}
			}
		})
	}
}

// filesOf are the files of a backup, but its locks.
func filesOf(t testing.TB, d *disktest.Disk, dir string) (all []string) {
	t.Helper()
	for _, sub := range []string{"", "0000000000000001", "0000000000000001/log", "sstables"} {
		names, err := d.List(filepath.Join(dir, sub))
		must(t, err)
		for _, name := range names {
			if strings.Contains(name, ".") || name == "MANIFEST" || name == "BACKUP" {
				all = append(all, filepath.Join(dir, sub, name))
			}
		}
	}
	return all
}

func contentsOf(t testing.TB, d *disktest.Disk, name string) string {
	t.Helper()
	f, err := d.Open(name)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	return string(b)
}
