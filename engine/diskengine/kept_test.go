package diskengine_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// flushed pushes large bodies, and has them written to sstables.
func (b *bodies) flushed(size int, keys ...string) {
	b.Helper()
	for _, key := range keys {
		if err := <-b.push(b.Context(), key, size); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// rearms are messages without bodies that keep those of others.
func rearms(keys ...string) (msgs []engine.Message) {
	for _, key := range keys {
		m := message("q", key, 2*time.Hour)
		m.OnConflict = engine.Rearm
		msgs = append(msgs, m)
	}
	return msgs
}

// kept fails where a message has not the body that it had, or is not due later.
func (b *bodies) kept(size int, keys ...string) {
	b.Helper()
	for _, key := range keys {
		i, err := b.Get(b.Context(), engine.Ref{Queue: "q", Key: key})
		if err != nil || !bytes.Equal(i.Body, b.large(key, size)) || time.Until(i.Due) < 90*time.Minute {
			b.Errorf("%s has %d bytes and is due %v: %v", key, len(i.Body), i.Due, err)
		}
	}
}

// TestLargeBodiesThatAreKeptWait winds large messages back while the disk writes none: they wait for each
// other, as if their bodies were pushed.
func TestLargeBodiesThatAreKeptWait(t *testing.T) {
	for name, push := range map[string]func(b *bodies, msgs []engine.Message) error{
		"each":   func(b *bodies, msgs []engine.Message) error { return pushAll(b.T, b, msgs...) },
		"as one": func(b *bodies, msgs []engine.Message) error { _, err := b.PushAtomic(b.Context(), msgs); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bodies) {
				keys := []string{"a", "b", "c", "d"}
				b.flushed(alone, keys...)
				goOn := b.holds()
				answers := make(chan error, len(keys))
				for _, key := range keys {
					go func() { answers <- push(b, rearms(key)) }()
				}
				synctest.Wait()
				if n := int(enginetest.FigureOf(b.T, b.Engine, "disk_memtable_messages", "")); n > 1 {
					b.Errorf("%d of %d are in memory, where one has room", n, len(keys))
				}
				goOn()
				for range keys {
					if err := <-answers; err != nil {
						b.Error(err)
					}
				}
				b.kept(alone, keys...)
			})
		})
	}
}

// TestLargeBodiesAreKeptBesideOthers winds large messages back in one call with others: all are answered in
// order, and as one all or none is.
func TestLargeBodiesAreKeptBesideOthers(t *testing.T) {
	inBubble(t, func(b *bodies) {
		b.flushed(300<<10, "a", "b", "c", "d", "e", "f")
		msgs := append(rearms("a", "new", "b", "c", "d", "e"), message("q", "a", time.Hour), message("q", "last", time.Hour))
		r, err := b.Push(b.Context(), msgs)
		if err != nil {
			b.Fatal(err)
		}
		for i := range r {
			want, exists := engine.Replaced, i == 6
			if i == 1 || i > 5 {
				want = engine.Created
			}
			if exists != errors.Is(r[i].Err, engine.ErrExists) || !exists && (r[i].Err != nil || r[i].Outcome != want) {
				b.Errorf("%d: %+v", i, r[i])
			}
		}
		b.kept(300<<10, "a", "b", "c", "d", "e")
		if _, err := b.PushAtomic(b.Context(), append(rearms("f", "a"), message("q", "last", time.Hour))); !errors.Is(err, engine.ErrExists) {
			b.Errorf("as one, with one that exists: %v", err)
		}
		if i, err := b.Get(b.Context(), engine.Ref{Queue: "q", Key: "f"}); err != nil || time.Until(i.Due) > 90*time.Minute {
			b.Errorf("%v %v", i.Due, err)
		}
		if _, err := b.PushAtomic(b.Context(), append(rearms("f", "a"), message("q", "very last", time.Hour))); err != nil {
			b.Errorf("as one: %v", err)
		}
		b.kept(300<<10, "f")
		if err := b.Sound(); err != nil {
			b.Error(err)
		}
	})
}

// TestWhoIsBeforeALargeBodyThatIsKept has a call end while a large message in it waits: who stands before it is
// answered, and the others hear that nothing was pushed.
func TestWhoIsBeforeALargeBodyThatIsKept(t *testing.T) {
	inBubble(t, func(b *bodies) {
		b.flushed(100<<10, "a", "b", "c")
		goOn, reads := make(chan struct{}), 0
		b.disk.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
				if reads++; reads == 3 { // once it is let in for what it keeps
					<-goOn
				}
			}
			return nil
		})
		other := make(chan error, 1)
		go func() { other <- pushAll(b.T, b, rearms("c")...) }()
		synctest.Wait()
		ctx, leave := context.WithTimeout(b.Context(), time.Second)
		defer leave()
		r, err := b.Push(ctx, append([]engine.Message{message("q", "small", time.Hour)}, rearms("a", "b")...))
		if err != nil {
			b.Fatal(err)
		}
		for i := range r {
			if i == 0 && r[i].Err != nil || i > 0 && (!errors.Is(r[i].Err, context.DeadlineExceeded) || !strings.Contains(r[i].Err.Error(), "nothing was pushed")) {
				b.Errorf("%d: %+v", i, r[i])
			}
		}
		close(goOn)
		if err := <-other; err != nil {
			b.Error(err)
		}
		if i, err := b.Queue(b.Context(), "q"); err != nil || i.Scheduled != 4 {
			b.Errorf("%+v, %v", i, err)
		}
	})
}
