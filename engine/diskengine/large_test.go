package diskengine_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// large pushes messages with long bodies and keys 0, 1 and so on.
func large(t *testing.T, e engine.Engine, n, body int, m engine.Message) {
	t.Helper()
	for i := range n {
		m.Queue, m.Key, m.Body = "q", fmt.Sprint(i), make([]byte, body)
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err != nil || r[0].Err != nil {
			t.Fatal(r, err)
		}
	}
}

// TestLargeContentsAreReadFewAtATime leases from an sstable, lists it, and opens the store with all of
// them leased: no more is read at a time than an answer holds.
func TestLargeContentsAreReadFewAtATime(t *testing.T) {
	const n, body = 80, 256 << 10 // 20 MiB
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{}}
	e := p.open(t)
	large(t, e, n, body, engine.Message{})
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			read.Add(int64(c.Len))
		}
		return nil
	})
	const limit = 5
	page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: limit})
	if err != nil || len(page.Messages) != limit || page.Next == "" {
		t.Fatal(err, len(page.Messages))
	}
	t.Logf("%d KiB were read for a page of %d", read.Load()>>10, limit)
	if most := int64((limit + 1) * body); read.Load() > most {
		t.Errorf("%d bytes were read for a page, at most %d are needed", read.Load(), most)
	}
	read.Store(0)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n, TTR: time.Hour}})
	if err != nil || g.Queues[0].Err != nil || !g.Queues[0].More {
		t.Fatal(err, g.Queues[0].Err, g.Queues[0].More)
	}
	if got := len(g.Queues[0].Messages); got < engine.AnswerBytes/body || got > engine.AnswerBytes/body+1 {
		t.Errorf("%d messages of %d bytes are leased at a time", got, body)
	}
	// Their first bytes are read for the order, and those of the answer whole.
	t.Logf("%d MiB were read for a lease", read.Load()>>20)
	if most := int64(n*8<<10 + 3*engine.AnswerBytes/2); read.Load() > most {
		t.Errorf("%d bytes were read, at most %d are needed", read.Load(), most)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLongEntriesAreCut lets messages die whose contents are more than an entry of the log may
// have, and rearms them as one: that is refused, and the store goes on.
func TestLongEntriesAreCut(t *testing.T) {
	const n, body = 70, 128 << 10 // 8.75 MiB
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{EntryBytes: 2 << 20}}
	var sealed atomic.Bool
	hold, held := make(chan struct{}), make(chan struct{})
	p.tune.Between = func(where string) {
		if where == "install" && sealed.CompareAndSwap(false, true) {
			close(held)
			<-hold
		}
	}
	e := p.open(t)
	large(t, e, n, body, engine.Message{Terms: engine.Terms{MaxAttempts: 1}})
	var all []engine.Message
	for i := range n {
		all = append(all, engine.Message{Queue: "q", Key: fmt.Sprint(i), OnConflict: engine.Rearm})
	}
	flushed := make(chan error, 1)
	go func() { flushed <- e.Flush(t.Context()) }() // who stands in a sealed memtable is written with his content
	<-held
	if _, err := e.PushAtomic(t.Context(), all); !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("an atomic push of too much: %v", err)
	}
	for leased := 0; leased < n; {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n, TTR: time.Second}})
		if err != nil || len(g.Queues[0].Messages) == 0 {
			t.Fatal(err, leased)
		}
		leased += len(g.Queues[0].Messages)
	}
	clock.Advance(time.Minute)
	i, err := e.Queue(t.Context(), "q")
	if err != nil || i.Dead != n {
		t.Errorf("%d of %d are dead: %v", i.Dead, n, err)
	}
	close(hold)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTooLargeABody pushes bodies that are larger than any may be, alone, beside others and as one: each
// is refused, and the store goes on.
func TestTooLargeABody(t *testing.T) {
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, EntryBytes: 400 << 10}}
	e := p.open(t)
	most := e.Capabilities().MaxBody
	msgs := make([]engine.Message, 3)
	for i, size := range []int{most, most + 1, 500 << 10} {
		msgs[i] = message("q", fmt.Sprint(i), time.Hour)
		msgs[i].Body = noise(size)
	}
	r, err := e.Push(t.Context(), msgs)
	if err != nil || r[0].Err != nil || !errors.Is(r[1].Err, engine.ErrTooLarge) || !errors.Is(r[2].Err, engine.ErrTooLarge) {
		t.Errorf("bodies of at most %d bytes: %v %v", most, r, err)
	}
	atomic := []engine.Message{message("q", "a", time.Hour), msgs[1]}
	if _, err = e.PushAtomic(t.Context(), atomic); !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("one that is too large, as one with another: %v", err)
	}
	push(t, e, "b", 0)
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Scheduled != 1 || i.Ready != 1 {
		t.Errorf("%+v, %v", i, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLargestBodies takes bodies as large as any may be through memory, an sstable, a merge and an opening, to
// those who lease them.
func TestLargestBodies(t *testing.T) {
	n := disktest.Thorough(1, 20)
	p := place{vfs.OS{}, t.TempDir(), diskengine.Config{Logger: quiet, MemoryBytes: 64 << 20}, diskengine.Tune{}}
	e := p.open(t)
	most := e.Capabilities().MaxBody
	if most != 64<<20 {
		t.Errorf("a body has at most %d bytes", most)
	}
	random := rand.NewChaCha8([32]byte{})
	sums := make(map[string][sha256.Size]byte)
	body := make([]byte, most)
	for i := range n {
		_, _ = random.Read(body) // never fails
		m := message("q", fmt.Sprint(i), 0)
		m.Body, sums[m.Key] = body, sha256.Sum256(body)
		if err := pushAll(t, e, m); err != nil {
			t.Fatal(err)
		}
	}
	check := func(body []byte, key string) {
		t.Helper()
		if sha256.Sum256(body) != sums[key] {
			t.Errorf("%s is another, of %d bytes", key, len(body))
		}
	}
	info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "0"})
	if err != nil {
		t.Fatal(err)
	}
	check(info.Body, "0")
	err = errors.Join(e.Flush(t.Context()), e.Merge(t.Context()), e.Close())
	if err != nil {
		t.Fatal(err)
	}
	e = p.open(t)
	for range n {
		for _, l := range lease(t, e, "q", 1) {
			check(l.Body, l.Key)
			delete(sums, l.Key)
			settle(t, e, []engine.Lease{l}, engine.Ack)
		}
	}
	if len(sums) > 0 {
		t.Errorf("%d of %d did not come", len(sums), n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
