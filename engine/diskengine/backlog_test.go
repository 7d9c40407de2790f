package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// The log may be so far ahead of sstables here before pushes wait.
const (
	aheadSpan = 256 << 10
	mostAhead = 4 * aheadSpan
)

// starved is an engine in a bubble of package synctest whose flushes write nothing until they are let.
type starved struct {
	*diskengine.Engine
	place
	disk  *disktest.Disk
	let   func()
	again func() // while it is said again what is in no sstable; nil: nothing is done
}

func starve(t *testing.T) *starved {
	d, gate := disktest.New(nil), make(chan struct{})
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Write && strings.HasSuffix(c.Name, ".run") {
			<-gate
		}
		return nil
	})
	s := &starved{disk: d, let: sync.OnceFunc(func() { close(gate) })}
	between := func(where string) {
		if where == "rewrite" && s.again != nil {
			s.again()
		}
	}
	s.place = place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: aheadSpan, Between: between}}
	s.Engine = s.open(t)
	return s
}

func (s *starved) is(t *testing.T, name string) int {
	t.Helper()
	return int(enginetest.FigureOf(t, s.Engine, name, ""))
}

// scheduled is how many messages of a queue are not due yet.
func (s *starved) scheduled(t *testing.T, queue string) int64 {
	t.Helper()
	i, err := s.Queue(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}
	return i.Scheduled
}

// waits has n callers push a megabyte each, and returns when the last of them waits. What they are
// answered is sent then.
func (s *starved) waits(t *testing.T, ctx context.Context, n int) <-chan error {
	t.Helper()
	answers := make(chan error, n)
	for i := range n {
		go func() {
			var err error
			for at := 0; at < 1000 && err == nil; at += 50 {
				msgs := make([]engine.Message, 50)
				for k := range msgs {
					msgs[k] = message("late", fmt.Sprint(i, "-", at+k), time.Hour)
					msgs[k].Body = noise(1000)
				}
				_, err = s.Push(ctx, msgs)
			}
			answers <- err
		}()
	}
	time.Sleep(10 * time.Second) // pushes are slowed before they wait
	synctest.Wait()
	if got := s.is(t, "disk_waiting_pushes"); got != n {
		t.Errorf("%d pushes wait, want %d", got, n)
	}
	return answers
}

// TestPushesWaitForTheFlush pushes more than the log may be ahead by while nothing is flushed: pushes
// wait, all else goes on, and nothing is lost once it is.
func TestPushesWaitForTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pushers = 4
		e := starve(t)
		defer e.let()
		if _, err := fill(t, e, "q", 100, 0); err != nil {
			t.Fatal(err)
		}
		answers := e.waits(t, t.Context(), pushers)
		bounded := func(when string) {
			t.Helper()
			if n := e.is(t, "disk_log_bytes"); n < mostAhead*3/4 || n > mostAhead+aheadSpan {
				t.Errorf("%s the log holds %d bytes, about %d it may", when, n, mostAhead)
			}
		}
		bounded("while pushes wait")
		got := lease(t, e, "q", 60)
		settle(t, e, got[:40], engine.Ack)
		settle(t, e, got[40:], engine.Extend)
		for i := range 10 {
			refs := []engine.Ref{{Queue: "q", Key: fmt.Sprint("q-", 90+i)}}
			if errs, err := e.Cancel(t.Context(), refs); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		if _, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "q-80"}, engine.When{In: time.Hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		bounded("a minute later")
		if n := e.is(t, "disk_waiting_pushes"); n != pushers {
			t.Errorf("%d pushes wait a minute later, want %d", n, pushers)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := e.Push(ctx, []engine.Message{message("late", "impatient", time.Hour)})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "behind") || strings.Contains(err.Error(), "\n") {
			t.Errorf("whoever waits no longer is told: %v", err)
		}
		e.let()
		for range pushers {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if n := e.is(t, "disk_waiting_pushes"); n != 0 {
			t.Errorf("%d pushes still wait", n)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		again := e.open(t)
		for queue, want := range map[string]int64{"late": pushers * 1000, "q": 50} {
			if i, err := again.Queue(t.Context(), queue); err != nil || i.Ready+i.Scheduled+i.Leased != want {
				t.Errorf("of %s there are %+v, want %d: %v", queue, i, want, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWhatIsPushedMeanwhileIsNotSaidAgain pushes while a flush says again what is in no sstable: that counts for
// how far the log is ahead.
func TestWhatIsPushedMeanwhileIsNotSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := starve(t)
		defer e.let()
		e.again = func() { time.Sleep(time.Second) }
		answers := e.waits(t, t.Context(), 4)
		time.Sleep(time.Minute)
		if n := e.is(t, "disk_log_bytes"); n < mostAhead*3/4 || n > mostAhead+aheadSpan {
			t.Errorf("while pushes wait the log holds %d bytes, about %d it may", n, mostAhead)
		}
		e.let()
		for range cap(answers) {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPushesThatWaitHearOfTooLittleSpace has others use the disk up while pushes wait for a flush: they are
// told so, as those are that come then.
func TestPushesThatWaitHearOfTooLittleSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := starve(t)
		defer e.let()
		answers := e.waits(t, t.Context(), 3)
		were := e.scheduled(t, "late")
		e.disk.SetSpace(e.disk.Used() + 128<<20) // less than is to stay free
		time.Sleep(2 * time.Second)
		if err := pushAll(t, e, message("late", "new", time.Hour)); !errors.Is(err, engine.ErrNoSpace) {
			t.Errorf("a push that comes is told: %v", err)
		}
		e.let()
		for range cap(answers) {
			if err := <-answers; !errors.Is(err, engine.ErrNoSpace) {
				t.Errorf("a push that waited is told: %v", err)
			}
		}
		if are := e.scheduled(t, "late"); are != were {
			t.Errorf("%d messages were pushed where pushes are refused", are-were)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCloseEndsPushesThatWait closes an engine while pushes wait for a flush that does not go on.
func TestCloseEndsPushesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := starve(t)
		defer e.let()
		answers := e.waits(t, t.Context(), 3)
		closed := make(chan error)
		go func() { closed <- e.Close() }()
		synctest.Wait()
		for range 3 {
			select {
			case err := <-answers:
				if !errors.Is(err, engine.ErrClosed) {
					t.Errorf("a push at Close: %v", err)
				}
			default:
				t.Error("a push waits on after Close")
			}
		}
		e.let()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestLargePushesWaitForEachOther pushes bodies each of which is larger than the log may be ahead by: one
// goes in alone, and no other until that is written to an sstable.
func TestLargePushesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pushers, size = 5, mostAhead * 3 / 2
		e := starve(t)
		defer e.let()
		body := noise(size)
		answers := make(chan error, pushers)
		for i := range pushers {
			go func() {
				m := message("q", fmt.Sprint(i), time.Hour)
				m.Body = body
				r, err := e.PushAtomic(t.Context(), []engine.Message{m})
				if err == nil {
					err = r[0].Err
				}
				answers <- err
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait() // one may be asking again
		if n := e.is(t, "disk_waiting_pushes"); n != pushers-1 {
			t.Errorf("%d of %d pushes wait", n, pushers)
		}
		if n := e.is(t, "disk_log_bytes"); n < size || n > size*5/4 {
			t.Errorf("the log holds %d bytes, one has %d", n, size)
		}
		e.let()
		for range pushers {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHeadersCountAsBodiesDo pushes messages without a body whose headers are larger together than the log may
// be ahead by: one push goes in, and no other until that is written to an sstable.
func TestHeadersCountAsBodiesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pushers, n, each = 5, 300, mostAhead * 3 / 2 / 300
		e := starve(t)
		defer e.let()
		headers := []engine.Header{{Name: "h", Value: string(noise(each))}}
		answers := make(chan error, pushers)
		for i := range pushers {
			go func() {
				msgs := make([]engine.Message, n)
				for k := range msgs {
					msgs[k] = message("q", fmt.Sprint(i, "-", k), time.Hour)
					msgs[k].Headers = headers
				}
				_, err := e.PushAtomic(t.Context(), msgs)
				answers <- err
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait() // one may be asking again
		if k := e.is(t, "disk_waiting_pushes"); k != pushers-1 {
			t.Errorf("%d of %d pushes wait", k, pushers)
		}
		if k := e.is(t, "disk_log_bytes"); k < n*each || k > n*each*5/4 {
			t.Errorf("the log holds %d bytes, one push has %d", k, n*each)
		}
		e.let()
		for range pushers {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWhatIsSaidAgainHoldsNoPushUp has more leases than the log may be ahead by, which each flush writes
// again: pushes go on.
func TestWhatIsSaidAgainHoldsNoPushUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases, span = 6000, 32 << 10
		p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: span}}
		e := p.open(t)
		defer e.Close()
		for i := 0; i < leases; i += 500 {
			msgs := make([]engine.Message, 500)
			for k := range msgs {
				msgs[k] = message("leased", "", 0)
			}
			if err := pushAll(t, e, msgs...); err != nil {
				t.Fatal(err)
			}
			lease(t, e, "leased", 500)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		for i := range 200 {
			m := message("q", fmt.Sprint(i), time.Hour)
			m.Body = noise(4000)
			if _, err := e.Push(ctx, []engine.Message{m}); err != nil {
				t.Fatalf("push %d: %v", i, err)
			}
		}
		if n := enginetest.FigureOf(t, e, "disk_log_bytes", ""); n < 4*span {
			t.Errorf("the log holds %v bytes, which are not more than pushes wait for", n)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWhatIsSaidAgainIsNoReasonToFlush has more leases than a segment of the log has room for, which each
// flush says again, and then too little space: nothing is flushed over and over.
func TestWhatIsSaidAgainIsNoReasonToFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases, segment = 4000, 64 << 10
		d := disktest.New(nil)
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Rename { // of a manifest, as each flush does
				time.Sleep(time.Second)
			}
			return nil
		})
		p := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: segment, SpanBytes: 4 * segment}}
		e := p.open(t)
		for range leases / 500 {
			msgs := make([]engine.Message, 500)
			for k := range msgs {
				msgs[k] = message("q", "", 0)
			}
			if err := pushAll(t, e, msgs...); err != nil {
				t.Fatal(err)
			}
			lease(t, e, "q", len(msgs))
		}
		is := func(name string) int { t.Helper(); return int(enginetest.FigureOf(t, e, name, "")) }
		time.Sleep(time.Minute)
		before := is("disk_flushes")
		d.SetSpace(d.Used() + 128<<20) // less than is to stay free
		time.Sleep(time.Minute)
		if n := is("disk_flushes") - before; is("disk_full") == 0 || n > 2 {
			t.Errorf("%d flushes in a minute in which nobody did anything", n)
		}
		if n := is("disk_log_bytes"); n <= segment {
			t.Errorf("what is said again are %d bytes, no more than a segment has", n)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFlushHasRoomOnASmallDisk pushes as much as is accepted to a disk of some spans while nothing is
// flushed: there is room left for the flush, which has pushes accepted again.
func TestFlushHasRoomOnASmallDisk(t *testing.T) {
	for name, tune := range map[string]struct{ spans, ballast int64 }{"some spans": {8, aheadSpan / 2}, "one span": {1, aheadSpan / 2}, "no ballast": {8, -1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, gate := disktest.New(nil), make(chan struct{})
				d.Hook(func(c disktest.Call) error {
					if c.Op == disktest.Write && strings.HasSuffix(c.Name, ".run") {
						<-gate
					}
					return nil
				})
				p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, BallastBytes: tune.ballast},
					diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: aheadSpan}}
				e := p.open(t)
				synctest.Wait() // the log has one segment, and others ahead
				d.SetSpace(d.Used() + tune.spans*aheadSpan - p.tune.SegmentBytes)
				time.Sleep(2 * time.Second) // which is noticed
				answers := make(chan error, 4)
				for i := range cap(answers) {
					go func() {
						_, err := fill(t, e, fmt.Sprint("q", i), 10_000, time.Hour)
						answers <- err
					}()
				}
				synctest.Wait()
				close(gate)
				for range cap(answers) { // until it is full of sstables
					if err := <-answers; !errors.Is(err, engine.ErrNoSpace) {
						t.Errorf("the disk is full, and a push is told: %v", err)
					}
				}
				time.Sleep(time.Minute)
				is := func(name string) float64 { t.Helper(); return enginetest.FigureOf(t, e, name, "") }
				if flushes, memtables := is("disk_flushes"), is("disk_sealed_memtables"); flushes == 0 || tune.ballast > 0 && memtables > 0 {
					t.Errorf("%v memtables were written, and for %v there is no room", flushes, memtables)
				}
				for i := range cap(answers) {
					for _, l := range lease(t, e, fmt.Sprint("q", i), 1) {
						t.Errorf("%+v goes out early", l)
					}
					if _, err := e.Purge(t.Context(), fmt.Sprint("q", i), 0); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				if err := pushAll(t, e, message("q", "again", time.Hour)); err != nil {
					t.Errorf("a push, once all is purged: %v", err)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
