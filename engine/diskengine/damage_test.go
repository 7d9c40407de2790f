package diskengine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// spoil flips a bit in the only sstable of a store, some way into its entries.
func spoil(t *testing.T, d *disktest.Disk, off int64) {
	t.Helper()
	names, err := d.List(filepath.Join("data", "runs"))
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".run") })
	if len(names) != 1 {
		t.Fatal(names)
	}
	d.Flip(filepath.Join("data", "runs", names[0]), off, 1)
}

// drain leases and acks all there is of queue q, and returns the keys.
func drain(t *testing.T, e engine.Engine) (keys []string) {
	t.Helper()
	for {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 50}})
		if err == nil {
			err = g.Queues[0].Err
		}
		if err != nil {
			t.Fatal(err)
		}
		var acks []engine.Settlement
		for _, m := range g.Queues[0].Messages {
			keys = append(keys, m.Key)
			acks = append(acks, engine.Settlement{Token: m.Token, Do: engine.Ack})
		}
		settled, err := e.Settle(t.Context(), acks)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range settled {
			if s.Err != nil {
				t.Fatal(s.Err)
			}
		}
		if !g.Queues[0].More {
			if next := g.Queues[0].NextDue; !next.IsZero() && next.Sub(g.Now) < time.Second {
				t.Errorf("nothing is due, and one is to come again in %v", next.Sub(g.Now))
			}
			return keys
		}
	}
}

// TestDamageIsPassedOver damages a block of an sstable: who stands there is neither leased nor found, and
// is dropped by a cancel of the id; all others of the queue are leased as ever, also by who opens
// the store again.
func TestDamageIsPassedOver(t *testing.T) {
	const n = 200
	for _, again := range []bool{false, true} {
		d, clock := disktest.New(nil), enginetest.NewClock()
		p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}
		e := p.open(t)
		ids := make(map[string]engine.ID)
		for i := range n {
			key := fmt.Sprint("k", i)
			r, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Key: key, Content: engine.Content{Body: []byte(key)}}})
			if err != nil || r[0].Err != nil {
				t.Fatal(r, err)
			}
			ids[key] = r[0].ID
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		spoil(t, d, 2000)
		if again {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t)
		}
		got := drain(t, e)
		if len(got) >= n || len(got) < n-30 {
			t.Fatalf("%d of %d are leased", len(got), n)
		}
		for _, key := range got {
			delete(ids, key)
		}
		if n := enginetest.FigureOf(t, e, "disk_damaged_blocks", ""); n != 1 {
			t.Errorf("%v blocks are told to be damaged", n)
		}
		if all := e.Troubles(); len(all) != 1 || !strings.Contains(all[0].Message, "a block of the store in data is damaged") || !strings.Contains(all[0].Hint, "tarry check data --salvage") {
			t.Errorf("%+v", all)
		}
		info, err := e.Queue(t.Context(), "q")
		if left := info.Ready + info.Scheduled; err != nil || left != int64(len(ids)) {
			t.Errorf("%d are left, %d are counted: %v", len(ids), left, err)
		}
		for key, id := range ids {
			r, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Key: key}, {Queue: "q", Key: "other" + key}})
			if err != nil || !errors.Is(r[0].Err, sstable.ErrDamaged) || r[1].Err != nil {
				t.Errorf("a push of the key of one who cannot be read, and of another: %v %v", r, err)
			}
			toldOf(t, r[0].Err, id)
			_, err = e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
			toldOf(t, err, id)
			if queues, err := e.Find(t.Context(), []engine.ID{id}); err != nil || queues[0] != "q" {
				t.Errorf("one who cannot be read is found in %q, %v", queues, err)
			}
			_, err = e.Reschedule(t.Context(), engine.Ref{Queue: "q", ID: id}, engine.When{In: time.Hour})
			toldOf(t, err, id)
			_, err = e.Claim(t.Context(), engine.Ref{Queue: "q", Key: key}, engine.Want{TTR: time.Second})
			toldOf(t, err, id)
			_, err = e.PushAtomic(t.Context(), []engine.Message{{Queue: "q", Key: key}})
			toldOf(t, err, id)
			errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: key}, {Queue: "q", ID: id}, {Queue: "q", Key: "other" + key}})
			if err != nil || !errors.Is(errs[0], sstable.ErrDamaged) || errs[1] != nil || errs[2] != nil {
				t.Errorf("cancels by key, by id, and of another: %v %v", errs, err)
			}
			toldOf(t, errs[0], id)
			push(t, e, key, 0)
		}
		if got := drain(t, e); len(got) != len(ids) {
			t.Errorf("%d were pushed with keys that were freed, %d are leased", len(ids), len(got))
		}
		if info, err := e.Queue(t.Context(), "q"); err != nil || info.Ready+info.Scheduled+info.Leased+info.Dead != 0 {
			t.Errorf("left is %+v %v", info, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// toldOf sees to it that an error says that the store is damaged, and how to be rid of a message.
func toldOf(t *testing.T, err error, id engine.ID) {
	t.Helper()
	if !errors.Is(err, engine.ErrDamaged) || errors.Is(err, engine.ErrUnavailable) || engine.Code(err) != "internal" {
		t.Errorf("%v", err)
		return
	}
	for _, want := range []string{".run, offset", "cancel it by its id alone, " + id.String() + ",", "tarry check data --salvage"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestDamageOfTheLeased damages a block while its messages are leased, for the last time: when that
// is over the queue goes on, and the store can be opened.
func TestDamageOfTheLeased(t *testing.T) {
	for _, again := range []bool{false, true} {
		d, clock := disktest.New(nil), enginetest.NewClock()
		p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}
		e := p.open(t)
		for i := range 20 {
			m := engine.Message{Queue: "q", Key: fmt.Sprint(i), Terms: engine.Terms{MaxAttempts: 1}, Content: engine.Content{Body: noise(100)}}
			if r, err := e.Push(t.Context(), []engine.Message{m}); err != nil || r[0].Err != nil {
				t.Fatal(r, err)
			}
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 20, TTR: time.Second, Remote: true}})
		if err != nil || len(g.Queues[0].Messages) != 20 {
			t.Fatal(g, err)
		}
		spoil(t, d, 300)
		if again {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t)
		}
		clock.Advance(time.Minute)
		push(t, e, "new", 0)
		if got := drain(t, e); len(got) != 1 {
			t.Errorf("%v are leased", got)
		}
		info, err := e.Queue(t.Context(), "q")
		if err != nil || info.Dead == 0 || info.Dead == 20 || info.Leased != 0 {
			t.Errorf("%+v %v", info, err)
		}
		for _, m := range g.Queues[0].Messages {
			if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: m.ID}}); err != nil || errs[0] != nil {
				t.Errorf("cancel %s: %v %v", m.Key, errs, err)
			}
		}
		if info, err := e.Queue(t.Context(), "q"); err != nil || info.Ready+info.Scheduled+info.Leased+info.Dead != 0 {
			t.Errorf("left is %+v %v", info, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamageOfAnIndex damages the index of keys of an sstable: calls with keys that are looked for there
// are refused one by one, those beside them are carried out, and all is leased.
func TestDamageOfAnIndex(t *testing.T) {
	const n = 50
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
	e := p.open(t)
	for i := range n {
		push(t, e, fmt.Sprint(i), 0)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for off := int64(4096); ; off += 4096 { // where an index begins
		spoil(t, d, off+8)
		_, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "7"})
		if errors.Is(err, sstable.ErrDamaged) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Key: "7"}, {Queue: "q"}})
	if err != nil || !errors.Is(r[0].Err, engine.ErrDamaged) || !errors.Is(r[0].Err, sstable.ErrDamaged) || r[1].Err != nil {
		t.Errorf("a push of a key, and of none: %v %v", r, err)
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "7"}); strings.Contains(err.Error(), "by its id") || !strings.Contains(err.Error(), "tarry check data --salvage") {
		t.Errorf("of a key that cannot be looked for: %v", err)
	}
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "7"}, {Queue: "q", ID: r[1].ID}})
	if err != nil || !errors.Is(errs[0], sstable.ErrDamaged) || errs[1] != nil {
		t.Errorf("a cancel by key, and of another: %v %v", errs, err)
	}
	if got := drain(t, e); len(got) != n {
		t.Errorf("%d of %d are leased", len(got), n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAWantFailsAlone leases from two queues while what one of them has cannot be read for a while:
// the other gets its messages, and the first one its own when it can.
func TestAWantFailsAlone(t *testing.T) {
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
	e := p.open(t)
	push(t, e, "a", 0)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Push(t.Context(), []engine.Message{{Queue: "other", Key: "b"}}); err != nil || r[0].Err != nil {
		t.Fatal(r, err)
	}
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			return syscall.EIO
		}
		return nil
	})
	wants := []engine.Want{{Queue: "q", Max: 1}, {Queue: "other", Max: 1}}
	g, err := e.Lease(t.Context(), wants)
	if err != nil || !errors.Is(g.Queues[0].Err, engine.ErrUnavailable) || !strings.Contains(g.Queues[0].Err.Error(), "see what tarry check says") || len(g.Queues[1].Messages) != 1 {
		t.Fatal(g, err)
	}
	if n := enginetest.FigureOf(t, e, "disk_damaged_blocks", ""); n != 1 {
		t.Errorf("%v blocks are told to be damaged", n)
	}
	d.Hook(nil)
	if g, err = e.Lease(t.Context(), wants); err != nil || len(g.Queues[0].Messages) != 1 || len(g.Queues[1].Messages) != 0 {
		t.Fatal(g, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSettlementOfDamage settles a message that cannot be read any more: the error names it.
func TestSettlementOfDamage(t *testing.T) {
	d, clock := disktest.New(nil), enginetest.NewClock()
	e := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}.open(t)
	push(t, e, "a", 0)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	leased := lease(t, e, "q", 1)
	spoil(t, d, 100)
	settled, err := e.Settle(t.Context(), []engine.Settlement{{Token: leased[0].Token, Do: engine.Bury}})
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*engine.Error](settled[0].Err); !ok || e.Queue != "q" || !strings.Contains(e.Hint, "once its lease is over") {
		t.Errorf("%v", settled[0].Err)
	}
	toldOf(t, settled[0].Err, leased[0].ID)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPurgeDropsWhatCannotBeRead purges a queue of which nobody is leased and some cannot be read:
// these go with the others, be the block damaged or refused by the disk. What is dropped is forgotten
// with the sstable, and so is the damage.
func TestPurgeDropsWhatCannotBeRead(t *testing.T) {
	for _, refused := range []bool{false, true} {
		d, _, e, ids := unreadable(t, 100)
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if refused {
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off < 1000 {
					return syscall.EIO
				}
				return nil
			})
		} else {
			spoil(t, d, 100)
		}
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: ids[0]}); err == nil {
			t.Error("it can be read")
		}
		if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != 100 {
			t.Errorf("%d of 100 were dropped: %v", n, err)
		}
		d.Hook(nil)
		if info, err := e.Queue(t.Context(), "q"); err != nil || info.Scheduled != 0 {
			t.Errorf("left is %+v: %v", info, err)
		}
		if err := e.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		reads(t, e, "disk_damaged_blocks", "", none)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeasesWaitForADiskThatCannotRead leases from a queue whose first block the disk refuses to read:
// that fails each time, and of nothing behind it either.
func TestLeasesWaitForADiskThatCannotRead(t *testing.T) {
	d, clock := disktest.New(nil), enginetest.NewClock()
	e := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}.open(t)
	for i := range 200 {
		push(t, e, fmt.Sprint(i), 0)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off < 300 {
			return syscall.EIO
		}
		return nil
	})
	for range 3 {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 200}})
		if err != nil || !errors.Is(g.Queues[0].Err, syscall.EIO) || len(g.Queues[0].Messages) != 0 {
			t.Error(g, err)
		}
	}
	d.Hook(nil)
	if got := drain(t, e); len(got) != 200 {
		t.Errorf("%d of 200 are leased when the disk reads again", len(got))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenOfAMalformedBitmap opens a store whose manifest has a deletion bitmap that is none, and salvages it: which
// messages were deleted is lost, and all that can be read is kept.
func TestOpenOfAMalformedBitmap(t *testing.T) {
	d := disktest.New(nil)
	p := newPlace(d, nil)
	p.tune.SpanBytes = 1 << 30
	e := p.open(t)
	pushKeys(t, e, "a", "b")
	must(t, errors.Join(e.Flush(t.Context()), e.Close()))
	m, err := manifest.Open(d, "/data")
	must(t, err)
	s := m.State()
	s = s.Clone()
	s.Tables[0].Deleted, s.Tables[0].Alive = []byte{1, 0, 0, 0, 0}, 1
	must(t, m.Write(s))
	_, err = diskengine.OpenOn(d, p.dir, &p.cfg, p.tune)
	if !errors.Is(err, engine.ErrDamaged) || errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "MANIFEST") || !strings.Contains(err.Error(), "--salvage") {
		t.Error(err)
	}
	if out := salvaged(t, d, "/data", "/made"); len(out.Losses) != 1 || !out.Losses[0].Again {
		t.Errorf("%+v", out.Losses)
	}
	p.dir = "/made"
	e = p.open(t)
	if has, _ := whatLives(t, e); len(has) != 2 {
		t.Errorf("%v", has)
	}
	must(t, e.Close())
}

// TestCallerLeavesTheLookForAnId: the disk hangs while the id is looked for of a message that cannot be read:
// its caller can leave.
func TestCallerLeavesTheLookForAnId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{BlockBytes: 512}}.open(t)
		for i := range 20 {
			pushKeys(t, e, fmt.Sprint(i))
		}
		must(t, e.Flush(t.Context()))
		spoil(t, d, 100)
		ref := engine.Ref{Queue: "q", Key: "0"}
		var reads, hangs atomic.Int64
		gate := make(chan struct{})
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && reads.Add(1) == hangs.Load() {
				<-gate
			}
			return nil
		})
		if _, err := e.Get(t.Context(), ref); !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("%v", err)
		}
		hangs.Store(2 * reads.Load()) // at the last of them
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		left := make(chan error, 1)
		go func() {
			_, err := e.Get(ctx, ref)
			left <- err
		}()
		select {
		case <-left:
		case <-time.After(time.Minute):
			t.Error("he is still there")
		}
		if reads.Load() != hangs.Load() {
			t.Errorf("%d reads, and the disk was to hang at the one with number %d", reads.Load(), hangs.Load())
		}
		close(gate)
		must(t, e.Close())
	})
}

// TestDamageOfWhatIsRemembered: a key that is remembered cannot be read. The error does not say that a cancel
// frees it, since that finds none; a purge does.
func TestDamageOfWhatIsRemembered(t *testing.T) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{BlockBytes: 512}}.open(t)
	const n = 20
	for i := range n {
		m := message("q", fmt.Sprint(i), 0)
		m.Remember = time.Hour
		must(t, pushAll(t, e, m))
	}
	settle(t, e, lease(t, e, "q", n), engine.Ack)
	must(t, e.Flush(t.Context()))
	spoil(t, d, 100)
	damaged := ""
	for i := range n {
		key := fmt.Sprint(i)
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key}); errors.Is(err, engine.ErrDamaged) {
			damaged = key
			if strings.Contains(err.Error(), "by its id") {
				t.Errorf("%v", err)
			}
		}
	}
	if damaged == "" {
		t.Fatal("all can be read")
	}
	_, err := e.Purge(t.Context(), "q", engine.PurgeFinished)
	must(t, err)
	must(t, pushAll(t, e, message("q", damaged, 0)))
	must(t, e.Close())
}

// TestDamageWithARightChecksum: the value of a message in an sstable is as it was written, and means nothing. It is
// damaged as one whose checksum is wrong, and the others are not.
func TestDamageWithARightChecksum(t *testing.T) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
	ids := make(map[string]engine.ID)
	for _, key := range []string{"a", "b", "c"} {
		r, err := e.Push(t.Context(), []engine.Message{message("q", key, 0)})
		must(t, err)
		ids[key] = r[0].ID
	}
	e.Garble(ids["b"])
	must(t, e.Flush(t.Context()))
	if got := drain(t, e); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("leased are %q", got)
	}
	if n := enginetest.FigureOf(t, e, "disk_damaged_blocks", ""); n != 1 {
		t.Errorf("%v blocks are told to be damaged", n)
	}
	_, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: ids["b"]})
	toldOf(t, err, ids["b"])
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: ids["b"]}})
	must(t, errors.Join(append(errs, err)...))
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Ready+info.Leased != 0 {
		t.Errorf("left is %+v %v", info, err)
	}
	must(t, e.Close())
}

// TestRememberedWithARightChecksum: nor does what is known of a key that is remembered mean anything.
func TestRememberedWithARightChecksum(t *testing.T) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
	for _, key := range []string{"a", "b"} {
		m := message("q", key, 0)
		m.Remember = time.Hour
		must(t, pushAll(t, e, m))
	}
	held := lease(t, e, "q", 2)
	settle(t, e, held, engine.Ack)
	e.Garble(held[0].ID)
	must(t, e.Flush(t.Context()))
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: held[0].Key}); !errors.Is(err, engine.ErrDamaged) || !strings.Contains(err.Error(), "tarry check data --salvage") {
		t.Errorf("%v", err)
	}
	if got, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: held[1].Key}); err != nil || got.State != engine.Finished {
		t.Errorf("%+v, %v", got, err)
	}
	if n := enginetest.FigureOf(t, e, "disk_damaged_blocks", ""); n != 1 {
		t.Errorf("%v blocks are told to be damaged", n)
	}
	must(t, e.Close())
}

// TestContentThatMeansNothing: it is known when a message is due, and not what it carries. The log says so, and
// lists and leases pass it over.
func TestContentThatMeansNothing(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		t.Run(fmt.Sprint("flushed ", flushed), func(t *testing.T) {
			var log bytes.Buffer
			e := place{disktest.New(nil), "data", diskengine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
			r, err := e.Push(t.Context(), []engine.Message{message("q", "a", 0)})
			must(t, err)
			must(t, pushAll(t, e, message("q", "b", 0)))
			e.GarbleContent(r[0].ID)
			if flushed {
				must(t, e.Flush(t.Context()))
			}
			page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 10})
			if err != nil || len(page.Messages) != 1 || page.Messages[0].Key != "b" {
				t.Errorf("listed are %+v, %v", page, err)
			}
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); err == nil {
				t.Error("it is shown")
			}
			if got := drain(t, e); !slices.Equal(got, []string{"b"}) {
				t.Errorf("leased are %q", got)
			}
			must(t, e.Close())
			if n := strings.Count(log.String(), fmt.Sprint("id=", r[0].ID)); n < 2 {
				t.Errorf("it is told of %d times: %s", n, log.String())
			}
		})
	}
}

// TestTurnOfWhatIsDamaged: a message has its turn, and is in an sstable that is damaged when it comes. The operator is
// told, and no one waits for it.
func TestTurnOfWhatIsDamaged(t *testing.T) {
	var log bytes.Buffer
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
	must(t, pushAll(t, e, message("q", "a", 0), message("q", "b", 0)))
	settle(t, e, lease(t, e, "q", 1), engine.Ack) // the other has its turn
	must(t, e.Flush(t.Context()))
	spoil(t, d, 100)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 5}})
	if err != nil || g.Queues[0].Err != nil || len(g.Queues[0].Messages) > 0 || g.Queues[0].More {
		t.Errorf("%+v, %v", g, err)
	}
	must(t, e.Close())
	if !strings.Contains(log.String(), "a message cannot be read and is passed over") {
		t.Errorf("nobody is told: %s", log.String())
	}
}

// TestRecentThatMeansNothing: nor does one keep the others back that is in no sstable yet.
func TestRecentThatMeansNothing(t *testing.T) {
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
	r, err := e.Push(t.Context(), []engine.Message{message("q", "a", 0)})
	must(t, err)
	must(t, pushAll(t, e, message("q", "b", 0)))
	e.Garble(r[0].ID)
	if got := drain(t, e); !slices.Equal(got, []string{"b"}) {
		t.Errorf("leased are %q", got)
	}
	must(t, e.Close())
}

// TestFlushOfManyFails: a flush of more than is begun anew in one slice fails, and then succeeds.
func TestFlushOfManyFails(t *testing.T) {
	const n = 10_000
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 1 << 20, AheadSpans: -1}}.open(t)
	for i := 0; i < n; i += 1000 {
		var some []engine.Message
		for k := range 1000 {
			some = append(some, message("q", fmt.Sprint(i+k), 0))
		}
		must(t, pushAll(t, e, some...))
	}
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Create && strings.HasSuffix(c.Name, "MANIFEST.new") {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := e.Flush(t.Context()); err == nil {
		t.Error("it has not failed")
	}
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "1"}, {Queue: "q", Key: "9999"}})
	must(t, errors.Join(append(errs, err)...))
	d.Hook(nil)
	must(t, e.Flush(t.Context()))
	must(t, e.Sound())
	if got := drain(t, e); len(got) != n-2 {
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}
