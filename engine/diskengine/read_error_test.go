package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// readErrors is a store whose sstables have their first entries at so many bytes; from when it is called the
// disk does not give them.
func readErrors(t *testing.T, cfg diskengine.Config) (d *disktest.Disk, p place, e *diskengine.Engine, clock *enginetest.Clock, spoil func()) {
	t.Helper()
	d, clock = disktest.New(nil), enginetest.NewClock()
	cfg.Now = clock.Now
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	p = place{d, "data", cfg, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}
	return d, p, p.open(t), clock, func() {
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off == 64 {
				return syscall.EIO
			}
			return nil
		})
	}
}

// blockful is a message that fills about a block.
func blockful(queue, key string, in time.Duration) engine.Message {
	m := message(queue, key, in)
	m.Body = noise(100)
	return m
}

// TestOneThatTheDiskDoesNotGive: of many items that come in one call only that fails whose message the disk
// does not give, and it is carried out once it does.
func TestOneThatTheDiskDoesNotGive(t *testing.T) {
	d, _, e, _, spoil := readErrors(t, diskengine.Config{})
	must(t, pushAll(t, e, blockful("q", "a", 0), blockful("q", "waits", time.Hour)))
	must(t, e.Flush(t.Context()))
	bad := lease(t, e, "q", 1)
	must(t, pushAll(t, e, message("other", "b", 0), message("other", "c", time.Hour)))
	good := lease(t, e, "other", 1)
	spoil()
	all := []engine.Settlement{{Token: bad[0].Token, Do: engine.Retry}, {Token: good[0].Token, Do: engine.Ack}}
	out, err := e.Settle(t.Context(), all)
	if err != nil || !errors.Is(out[0].Err, engine.ErrUnavailable) || !strings.Contains(out[0].Err.Error(), "see to the disk") || out[1].Err != nil {
		t.Errorf("settled are %v, %v", out, err)
	}
	pushed, err := e.Push(t.Context(), []engine.Message{message("q", "waits", 0), message("other", "d", time.Hour)})
	if err != nil || !errors.Is(pushed[0].Err, engine.ErrUnavailable) || pushed[1].Err != nil {
		t.Errorf("pushed are %v, %v", pushed, err)
	}
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "waits"}, {Queue: "other", Key: "c"}})
	if err != nil || !errors.Is(errs[0], engine.ErrUnavailable) || errs[1] != nil {
		t.Errorf("cancelled are %v, %v", errs, err)
	}
	d.Hook(nil)
	if out, err := e.Settle(t.Context(), all[:1]); err != nil || out[0].Err != nil {
		t.Errorf("settled is %v, %v", out, err)
	}
	if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "waits"}}); err != nil || errs[0] != nil {
		t.Errorf("cancelled is %v, %v", errs, err)
	}
	must(t, e.Close())
}

// TestIndexThatTheDiskDoesNotGive: of the items of a call only that fails that is looked for in an index of an sstable,
// of keys or of ids, that the disk does not give.
func TestIndexThatTheDiskDoesNotGive(t *testing.T) {
	for by, ref := range map[string]engine.Ref{"key": {Queue: "q", Key: "a"}, "id": {Queue: "q", ID: 2}} {
		t.Run(by, func(t *testing.T) {
			d, _, e, _, _ := readErrors(t, diskengine.Config{})
			must(t, pushAll(t, e, message("q", "a", time.Hour), message("q", "b", time.Hour)))
			must(t, e.Flush(t.Context()))
			must(t, pushAll(t, e, message("other", "c", time.Hour)))
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off != 64 {
					return syscall.EIO
				}
				return nil
			})
			refs := []engine.Ref{ref, {Queue: "other", Key: "c"}}
			errs, err := e.Cancel(t.Context(), refs)
			if err != nil || !errors.Is(errs[0], syscall.EIO) || !errors.Is(errs[0], engine.ErrUnavailable) || errs[1] != nil {
				t.Errorf("cancelled are %v, %v", errs, err)
			}
			d.Hook(nil)
			errs, err = e.Cancel(t.Context(), refs[:1])
			must(t, errors.Join(append(errs, err)...))
			must(t, e.Close())
		})
	}
}

// TestLapseOfReadErrors: the last lease of a message is over, and what is to become of it cannot be
// read. What is asked of its queue fails, and of no other one in the same call; the message dies once it can.
func TestLapseOfReadErrors(t *testing.T) {
	d, _, e, clock, spoil := readErrors(t, diskengine.Config{})
	m := blockful("q", "a", 0)
	m.MaxAttempts = 1
	must(t, pushAll(t, e, m))
	must(t, e.Flush(t.Context()))
	lease(t, e, "q", 1)
	must(t, pushAll(t, e, message("other", "b", 0), message("other", "c", time.Hour)))
	spoil()
	clock.Advance(2 * time.Hour)
	held := lease(t, e, "other", 1)
	fails := func(what string, err, other error) {
		t.Helper()
		if !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EIO) || other != nil {
			t.Errorf("%s: %v, of another queue %v", what, err, other)
		}
	}
	pushed, err := e.Push(t.Context(), []engine.Message{message("q", "y", 0), message("other", "z", time.Hour)})
	must(t, err)
	fails("push", pushed[0].Err, pushed[1].Err)
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "y"}, {Queue: "other", Key: "z"}})
	must(t, err)
	fails("cancel", errs[0], errs[1])
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}, {Queue: "other", Max: 1}})
	must(t, err)
	fails("lease", g.Queues[0].Err, g.Queues[1].Err)
	settle(t, e, held, engine.Ack)
	d.Hook(nil)
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Dead != 1 || info.Leased != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, e.Close())
}

// TestOpenOfReadErrors opens a store with a leased message that cannot be read.
func TestOpenOfReadErrors(t *testing.T) {
	_, p, e, _, spoil := readErrors(t, diskengine.Config{})
	must(t, pushAll(t, e, blockful("q", "a", 0)))
	must(t, e.Flush(t.Context()))
	lease(t, e, "q", 1)
	must(t, e.Close())
	spoil()
	must(t, p.open(t).Close())
}

// TestPurgeOfReadErrors: a purge removes also what cannot be read, except what is leased.
func TestPurgeOfReadErrors(t *testing.T) {
	d, p, e, _, spoil := readErrors(t, diskengine.Config{})
	for i := range 20 {
		must(t, pushAll(t, e, blockful("q", fmt.Sprint(i), time.Duration(i)*time.Hour)))
	}
	must(t, e.Flush(t.Context()))
	lease(t, e, "q", 1)
	spoil()
	if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != 19 {
		t.Errorf("%d purged, %v", n, err)
	}
	must(t, e.Close())
	d.Hook(nil)
	e = p.open(t)
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Scheduled+info.Ready != 0 || info.Leased != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, e.Close())
}

// TestRoomBesideReadErrors: the table of leases is full of some that are over and of messages that
// cannot be read. They stay, and others get what places there are.
func TestRoomBesideReadErrors(t *testing.T) {
	_, _, e, clock, spoil := readErrors(t, diskengine.Config{MaxLeases: 4})
	must(t, pushAll(t, e, blockful("q", "a", 0), blockful("q", "b", 0)))
	must(t, e.Flush(t.Context()))
	lease(t, e, "q", 2)
	clock.Advance(2 * time.Hour)
	_, err := e.Queue(t.Context(), "q")
	must(t, errors.Join(err, e.Pause(t.Context(), "q", 0)))
	for i := range 4 {
		must(t, pushAll(t, e, message("other", fmt.Sprint(i), 0)))
	}
	spoil()
	if got := lease(t, e, "other", 4); len(got) != 1 { // another place is for others
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}

// TestAttemptsBesideReadErrors: what came of a lease is not forgotten, though the table is full and
// the message cannot be read for a while.
func TestAttemptsBesideReadErrors(t *testing.T) {
	d, _, e, clock, spoil := readErrors(t, diskengine.Config{MaxLeases: 4})
	m := blockful("q", "a", 0)
	m.MaxAttempts = 2
	must(t, pushAll(t, e, m))
	must(t, e.Flush(t.Context()))
	for attempt := range 2 {
		if got := lease(t, e, "q", 1); len(got) != 1 || got[0].Attempt != uint32(attempt)+1 {
			t.Fatalf("attempt %d: %+v", attempt+1, got)
		}
		clock.Advance(2 * time.Hour)
		_, err := e.Queue(t.Context(), "q")
		must(t, err)
		spoil()
		for i := range 4 {
			must(t, pushAll(t, e, message("other", fmt.Sprint(attempt, i), 0)))
		}
		settle(t, e, lease(t, e, "other", 4), engine.Ack)
		d.Hook(nil)
		must(t, e.ForgetIdle())
	}
	clock.Advance(time.Minute)
	if got := lease(t, e, "q", 1); len(got) != 0 {
		t.Errorf("it is handed out again: %+v", got)
	}
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Dead != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, e.Close())
}

// TestManyInABlockThatTheDiskDoesNotGive: many of whom a call is about stand in few blocks, which it takes long
// to fail to read. Each is read once.
func TestManyInABlockThatTheDiskDoesNotGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, e, _, _ := readErrors(t, diskengine.Config{})
		var refs []engine.Ref
		for i := range 100 {
			key := fmt.Sprint(i)
			must(t, pushAll(t, e, message("q", key, time.Hour)))
			refs = append(refs, engine.Ref{Queue: "q", ID: engine.ID(i + 1)})
		}
		must(t, e.Flush(t.Context()))
		reads := 0
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off < 4096 {
				reads++
				time.Sleep(5 * time.Second)
				return syscall.EIO
			}
			return nil
		})
		errs, err := e.Cancel(t.Context(), refs)
		must(t, err)
		for _, err := range errs {
			if !errors.Is(err, syscall.EIO) {
				t.Error(err)
			}
		}
		if reads == 0 || reads > 15 {
			t.Errorf("%d reads", reads)
		}
		d.Hook(nil)
		must(t, e.Close())
	})
}

// TestLeaseBeforeABlockThatTheDiskDoesNotGive: who stands before it is handed out, as long as nobody is due in it.
func TestLeaseBeforeABlockThatTheDiskDoesNotGive(t *testing.T) {
	d, _, e, clock, _ := readErrors(t, diskengine.Config{})
	for i := range 20 {
		m := message("q", fmt.Sprint(i), time.Duration(i)*time.Hour)
		m.Body = noise(400)
		must(t, pushAll(t, e, m))
	}
	must(t, e.Flush(t.Context()))
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off > 4000 {
			return syscall.EIO
		}
		return nil
	})
	if got := lease(t, e, "q", 1); len(got) != 1 {
		t.Errorf("%d are leased", len(got))
	}
	clock.Advance(24 * time.Hour)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 100}})
	if err != nil || !errors.Is(g.Queues[0].Err, syscall.EIO) {
		t.Errorf("%+v, %v", g, err)
	}
	d.Hook(nil)
	if got := drain(t, e); len(got) != 20 {
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}

// TestSlowConsumerReadsOn: who leases one message now and then does not read all that waits again each time,
// though sstables come and go meanwhile.
func TestSlowConsumerReadsOn(t *testing.T) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 1 << 20}}.open(t)
	for i := 0; i < 5000; i += 500 {
		var some []engine.Message
		for k := range 500 {
			some = append(some, blockful("q", fmt.Sprint(i+k), 0))
		}
		must(t, pushAll(t, e, some...))
	}
	must(t, e.Flush(t.Context()))
	bytes := 0
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			bytes += c.Len
		}
		return nil
	})
	for i := range 5 {
		settle(t, e, lease(t, e, "q", 1), engine.Ack)
		if i > 0 && bytes > 100_000 {
			t.Errorf("lease %d of one message read %d bytes", i, bytes)
		}
		must(t, pushAll(t, e, message("other", fmt.Sprint(i), time.Hour)))
		must(t, errors.Join(e.Flush(t.Context()), e.ForgetIdle()))
		bytes = 0
	}
	d.Hook(nil)
	must(t, e.Close())
}

// TestEndOfARunThatTheDiskDoesNotGive: an sstable is merged away while a message of it is read, and its file cannot be
// removed by who reads last.
func TestEndOfARunThatTheDiskDoesNotGive(t *testing.T) {
	d, _, e, _, _ := readErrors(t, diskengine.Config{})
	must(t, pushAll(t, e, blockful("q", "a", time.Hour)))
	must(t, e.Flush(t.Context()))
	var merges, ends atomic.Bool
	d.Hook(func(c disktest.Call) error {
		switch {
		case c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off == 64 && merges.CompareAndSwap(false, true):
			must(t, pushAll(t, e, blockful("q", "b", time.Hour)))
			must(t, errors.Join(e.Flush(context.Background()), e.Merge(context.Background())))
			ends.Store(true)
		case c.Op == disktest.Remove && strings.HasSuffix(c.Name, ".run") && ends.Load():
			return syscall.EIO
		}
		return nil
	})
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: 1}); !errors.Is(err, syscall.EIO) {
		t.Errorf("it ends with %v", err)
	}
	d.Hook(nil)
	if m, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: 1}); err != nil || m.Key != "a" {
		t.Errorf("%+v, %v", m, err)
	}
	must(t, e.Close())
}

// TestOpenTriesABlockOnce: many leases are of messages in a block that the disk does not give. It may take
// long to fail, so an opening does not read it again and again.
func TestOpenTriesABlockOnce(t *testing.T) {
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 8 << 20, BlockBytes: 1 << 20}}
	e := p.open(t)
	const n = 5 * engine.MaxLease
	for range n / engine.MaxLease {
		msgs := make([]engine.Message, engine.MaxLease)
		for i := range msgs {
			msgs[i] = message("q", "", 0)
		}
		must(t, pushAll(t, e, msgs...))
	}
	must(t, e.Flush(t.Context()))
	for range n / engine.MaxLease {
		lease(t, e, "q", engine.MaxLease)
	}
	must(t, e.Close())
	var tried atomic.Int64
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off == 64 {
			tried.Add(1)
			return syscall.EIO
		}
		return nil
	})
	e = p.open(t)
	d.Hook(nil)
	if n := tried.Load(); n == 0 || n > 20 { // to try it once takes a few reads
		t.Errorf("the disk was asked %d times for the block", n)
	}
	must(t, e.Close())
}
