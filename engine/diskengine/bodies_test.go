package diskengine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// bodies is a store whose calls a test has in its hands, and pushes of large bodies.
type bodies struct {
	*testing.T
	place
	disk    *disktest.Disk
	stopped bool
	*diskengine.Engine
}

// inBubble opens a store with the least memory, in a bubble, and closes it.
func inBubble(t *testing.T, fn func(b *bodies)) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		b := &bodies{T: t, disk: d, place: place{d, "data", diskengine.Config{Logger: quiet, MemoryBytes: diskengine.LeastMemory}, diskengine.Tune{}}}
		b.Engine = b.open(t)
		fn(b)
		if err := b.Close(); err != nil && !b.stopped {
			t.Error(err)
		}
	})
}

// large is a body of so many bytes, of a key.
func (b *bodies) large(key string, size int) []byte { return bytes.Repeat([]byte(key), size)[:size] }

// push pushes one, and returns what it becomes once all have done what they can. It waits for ten minutes
// at most, of the bubble.
func (b *bodies) push(ctx context.Context, key string, size int) chan error {
	done := make(chan error, 1)
	go func() {
		ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
		defer stop()
		m := message("q", key, time.Hour)
		m.Body = b.large(key, size)
		r, err := b.Push(ctx, []engine.Message{m})
		if err == nil {
			err = r[0].Err
		}
		done <- err
	}()
	synctest.Wait()
	return done
}

// waits fails where a push does not.
func (b *bodies) waits(what string, push chan error) {
	b.Helper()
	select {
	case err := <-push:
		b.Fatalf("%s was not awaited: %v", what, err)
	default:
	}
}

// holds has the disk take no large piece until what it returns is called.
func (b *bodies) holds() (goOn func()) {
	write := make(chan struct{})
	b.disk.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Write && c.Len > 1<<19 {
			<-write
		}
		return nil
	})
	return func() { close(write) }
}

const (
	alone = diskengine.LeastMemory/4 + 1     // who is let in alone
	fills = diskengine.LeastMemory/6*5 + 1e5 // behind whom the memtable is to be written first
)

// TestLargeBodiesWait has one push of a large body wait for the disk, and others for that one: they are let
// in one after the other, until their contexts end.
func TestLargeBodiesWait(t *testing.T) {
	inBubble(t, func(b *bodies) {
		goOn := b.holds()
		one := b.push(b.Context(), "one", alone)
		ctx, leave := context.WithCancel(b.Context())
		two := b.push(ctx, "two", alone)
		b.waits("one", two)
		leave()
		if err := <-two; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was pushed") {
			b.Errorf("who left: %v", err)
		}
		three := b.push(b.Context(), "three", alone)
		b.waits("one", three)
		b.waits("the disk", one)
		goOn()
		if err := errors.Join(<-one, <-three); err != nil {
			b.Error(err)
		}
		for key, there := range map[string]bool{"one": true, "two": false, "three": true} {
			i, err := b.Get(b.Context(), engine.Ref{Queue: "q", Key: key})
			if there != (err == nil) || there && !bytes.Equal(i.Body, b.large(key, alone)) {
				b.Errorf("%s: %d bytes, %v", key, len(i.Body), err)
			}
		}
		if err := b.Close(); err != nil {
			b.Fatal(err)
		}
		b.fs = b.disk.Crash(disktest.Nothing())
		b.Engine = b.open(t)
		if i, err := b.Get(b.Context(), engine.Ref{Queue: "q", Key: "one"}); err != nil || !bytes.Equal(i.Body, b.large("one", alone)) {
			b.Errorf("%d bytes are there again: %v", len(i.Body), err)
		}
	})
}

// TestLargeBodiesEndWithTheEngine closes it while one waits for the disk, and another for that one.
func TestLargeBodiesEndWithTheEngine(t *testing.T) {
	inBubble(t, func(b *bodies) {
		goOn := b.holds()
		one := b.push(b.Context(), "one", alone)
		two := b.push(b.Context(), "two", alone)
		b.waits("one", two)
		closed := make(chan error, 1)
		go func() { closed <- b.Close() }()
		if err := <-two; !errors.Is(err, engine.ErrClosed) {
			b.Errorf("who was not let in: %v", err)
		}
		synctest.Wait()
		b.waits("the disk", one)
		b.waits("one", closed)
		goOn()
		if err := errors.Join(<-one, <-closed); err != nil {
			b.Error(err)
		}
	})
}

// TestLargeBodiesWaitForWindows has one that is large wait until the memtable before it is written, and what
// may become of it meanwhile.
func TestLargeBodiesWaitForWindows(t *testing.T) {
	for name, x := range map[string]struct {
		meanwhile func(b *bodies, leave func()) // while nothing is written
		want      error                         // at once; nil: nothing, and in the end
		fails     bool                          // what is written next
	}{
		"written":  {},
		"handled":  {meanwhile: func(b *bodies, _ func()) { b.cancel("one") }},
		"its call": {meanwhile: func(_ *bodies, leave func()) { leave() }, want: context.Canceled},
		"closed":   {meanwhile: func(b *bodies, _ func()) { go func() { _ = b.Close() }() }, want: engine.ErrClosed},
		"stopped": {meanwhile: func(b *bodies, _ func()) {
			b.disk.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Sync && strings.HasSuffix(c.Name, ".log") {
					return syscall.EIO
				}
				return nil
			})
			b.stopped = true
			if _, err := b.Cancel(b.Context(), []engine.Ref{{Queue: "q", Key: "one"}}); !errors.Is(err, engine.ErrUnavailable) {
				b.Errorf("on a disk that fails: %v", err)
			}
		}, want: engine.ErrUnavailable},
		"fails": {meanwhile: func(b *bodies, _ func()) {
			b.disk.Hook(func(c disktest.Call) error {
				if strings.HasSuffix(c.Name, ".run") {
					return syscall.EIO
				}
				return nil
			})
		}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bodies) {
				ctx, leave := context.WithCancel(b.Context())
				defer leave()
				var two chan error
				err := b.Still(func() error {
					if err := <-b.push(b.Context(), "one", fills); err != nil {
						return err
					}
					two = b.push(ctx, "two", alone)
					b.waits("the memtable", two)
					if x.meanwhile != nil {
						x.meanwhile(b, leave)
					}
					if x.want != nil {
						if err := <-two; !errors.Is(err, x.want) {
							b.Errorf("%v, want %v", err, x.want)
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				switch {
				case x.fails:
					if err := <-two; !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
						b.Errorf("when the memtable cannot be written: %v", err)
					}
					b.disk.Hook(nil)
					time.Sleep(time.Minute)
					if err := <-b.push(ctx, "two", alone); err != nil {
						b.Error(err)
					}
				case x.want == nil:
					if err := <-two; err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func (b *bodies) cancel(key string) {
	b.Helper()
	if errs, err := b.Cancel(b.Context(), []engine.Ref{{Queue: "q", Key: key}}); err != nil || errs[0] != nil {
		b.Fatal(errs, err)
	}
}

// TestLargeBodiesThatAreRefusedTakeNothing pushes large bodies to a queue that is full, again and again: no
// memory is kept for them.
func TestLargeBodiesThatAreRefusedTakeNothing(t *testing.T) {
	inBubble(t, func(b *bodies) {
		if _, err := b.Configure(b.Context(), "q", engine.Settings{MaxPending: 1}, ""); err != nil {
			b.Fatal(err)
		}
		if err := <-b.push(b.Context(), "one", 1); err != nil {
			b.Fatal(err)
		}
		m := message("q", "two", time.Hour)
		m.Body = b.large("two", 1<<20)
		for range 20 {
			if r, err := b.Push(b.Context(), []engine.Message{m}); err != nil || !errors.Is(r[0].Err, engine.ErrLimit) {
				b.Fatalf("a push to a full queue: %v, %v", r, err)
			}
			if _, err := b.PushAtomic(b.Context(), []engine.Message{m}); !errors.Is(err, engine.ErrLimit) {
				b.Fatalf("an atomic push to a full queue: %v", err)
			}
		}
		for _, of := range []string{"memtable", "spare"} {
			if n := int(enginetest.FigureOf(b.T, b.Engine, "disk_memory_bytes", of)); n > diskengine.LeastMemory/2 {
				b.Errorf("%s are %d bytes, for one small message", of, n)
			}
		}
	})
}

// TestBodiesGatherInTheLog pushes bodies of about 64 KiB in one call: those just above are written to the log as many
// at a time as those just below.
func TestBodiesGatherInTheLog(t *testing.T) {
	const n, most = 16, 7
	for _, size := range []int{60_000, 70_000} {
		inBubble(t, func(b *bodies) {
			writes := 0
			b.disk.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Write && ofLog(c) && c.Len > size {
					writes++
				}
				return nil
			})
			msgs := make([]engine.Message, n)
			for i := range msgs {
				msgs[i] = message("q", fmt.Sprint(i), time.Hour)
				msgs[i].Body = noise(size)
			}
			if err := pushAll(b.T, b, msgs...); err != nil {
				b.Fatal(err)
			}
			b.disk.Hook(nil)
			if writes > most {
				b.Errorf("%d bodies of %d bytes are %d writes of the log, at most %d are well", n, size, writes, most)
			}
		})
	}
}

// TestLargeBodiesOfAllKinds pushes large bodies beside small ones, in the place of others and beyond what
// a queue may have: each is answered as if it were small.
func TestLargeBodiesOfAllKinds(t *testing.T) {
	clock := enginetest.NewClock()
	push := func(large []byte) []engine.PushResult {
		p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, Now: clock.Now}, diskengine.Tune{}}
		e := p.open(t)
		if _, err := e.Configure(t.Context(), "q", engine.Settings{MaxPending: 6}, ""); err != nil {
			t.Fatal(err)
		}
		var msgs []engine.Message
		for _, x := range []struct {
			key    string
			body   []byte
			policy engine.Conflict
		}{
			{"a", nil, engine.Reject}, {"a", large, engine.Reject}, {"a", large, engine.Replace}, {"b", large, engine.Reject}, {"b", large[1:], engine.KeepDue},
			{"c", large, engine.Rearm}, {"c", nil, engine.Rearm}, {"c", large[2:], engine.Keep}, {"", large, engine.Reject}, {"d", []byte("d"), engine.Reject},
			{"b", large, engine.Reject}, {"", large, engine.Reject}, {"e", large, engine.Replace}, {"f", nil, engine.Reject},
		} {
			m := message("q", x.key, time.Hour)
			m.Body, m.OnConflict = x.body, x.policy
			msgs = append(msgs, m)
		}
		r, err := e.Push(t.Context(), msgs)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string][]byte{"a": large, "b": large[1:], "c": large, "d": []byte("d")} {
			if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key}); err != nil || !bytes.Equal(i.Body, want) {
				t.Errorf("%s: %d bytes, want %d: %v", key, len(i.Body), len(want), err)
			}
		}
		if err := errors.Join(e.Sound(), e.Close()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	large, small := push(noise(300<<10)), push(noise(10))
	for i, want := range []engine.Outcome{engine.Created, 0, engine.Replaced, engine.Created, engine.Replaced, engine.Created, engine.Replaced, engine.Kept, engine.Created, engine.Created, 0, engine.Created, 0, 0} {
		if large[i].Outcome != want || !reflect.DeepEqual(large[i], small[i]) {
			t.Errorf("%d: %+v, want as a small one %+v and %v", i, large[i], small[i], want)
		}
	}
}

// TestLargeBodiesComeAndGo has callers push large bodies, read, lease and ack them, while memtables are
// written and memory is given back to the system as fast as that goes: whoever read or wrote some that was
// given back would crash, or have another's bytes.
func TestLargeBodiesComeAndGo(t *testing.T) {
	const callers, each, least, most = 4, 15, 60 << 10, 700 << 10 // some of them are not large
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MemoryBytes: diskengine.LeastMemory}, diskengine.Tune{}}
	e := p.open(t)
	is := func(key string, body []byte) {
		t.Helper()
		if len(body) < least || len(body) > most || !bytes.HasPrefix(bytes.Repeat([]byte(key), most), body) {
			t.Errorf("%s has the body of another, of %d bytes", key, len(body))
		}
	}
	over := make(chan struct{})
	var flushes sync.WaitGroup
	flushes.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if err := e.Flush(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 0))
			queue := fmt.Sprint("q", c)
			for i := range each {
				m := message(queue, fmt.Sprint(c, "-", i%5, "."), 0)
				m.OnConflict = []engine.Conflict{engine.Replace, engine.KeepDue, engine.Rearm}[i%3]
				m.Body = bytes.Repeat([]byte(m.Key), most)[:least+random.IntN(most-least+1)]
				msgs := []engine.Message{m, message(queue, "", time.Hour)}
				var err error
				if i%2 == 0 {
					_, err = e.PushAtomic(t.Context(), msgs)
				} else {
					err = pushAll(t, e, msgs...)
				}
				if err != nil {
					t.Error(err)
				}
				clear(m.Body) // it is the caller's again
				if i, err := e.Get(t.Context(), engine.Ref{Queue: queue, Key: m.Key}); err != nil {
					t.Error(err)
				} else {
					is(m.Key, i.Body)
				}
				if i%5 == 4 {
					for _, l := range lease(t, e, queue, 5) { // written beside the syncs of others
						is(l.Key, l.Body)
						settle(t, e, []engine.Lease{l}, engine.Ack)
					}
				}
			}
		})
	}
	group.Wait()
	close(over)
	flushes.Wait()
	if err := errors.Join(e.Sound(), e.Close()); err != nil {
		t.Fatal(err)
	}
}
