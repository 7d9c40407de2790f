package redisengine

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// writers add one to the dead_max of a queue, each again and again, on condition of the
// revision they have read.
type writers struct {
	t    *testing.T
	stop chan bool
	work sync.WaitGroup

	mu     sync.Mutex
	done   int64 // writes that succeeded
	unsure int64 // that ended with an error
	told   chan bool
}

func newWriters(t *testing.T, rawURL string) *writers {
	w := &writers{t: t, stop: make(chan bool), told: make(chan bool, 1)}
	for range 3 {
		e := openStore(t, rawURL)
		w.work.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
					w.write(e)
				}
			}
		})
	}
	return w
}

func (w *writers) write(e *Engine) {
	s, revision, err := e.Settings(w.t.Context(), "q")
	if err != nil {
		return // nothing was written
	}
	s.DeadMax++
	_, err = e.Configure(w.t.Context(), "q", s, revision)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.done++
	case !errors.Is(err, engine.ErrStale):
		w.unsure++
	}
	select {
	case w.told <- true:
	default:
	}
}

// more waits until n more writes have succeeded.
func (w *writers) more(n int64) {
	w.t.Helper()
	giveUp := time.After(longWait)
	for until := int64(0); ; {
		w.mu.Lock()
		done := w.done
		w.mu.Unlock()
		switch {
		case until == 0:
			until = done + n
		case done >= until:
			return
		}
		select {
		case <-w.told:
		case <-giveUp:
			w.t.Fatalf("%d writes, not %d", done, until)
		}
	}
}

// push pushes messages, again as long as the writers are faster.
func (w *writers) push(e *Engine, msgs ...engine.Message) {
	w.t.Helper()
	for len(msgs) > 0 {
		results, err := e.Push(w.t.Context(), msgs)
		if err != nil {
			w.t.Error(err)
			return
		}
		var again []engine.Message
		for i, r := range results {
			if r.Err != nil && strings.Contains(r.Err.Error(), (*differs)(nil).Error()) {
				again = append(again, msgs[i])
			} else if r.Err != nil {
				w.t.Errorf("message %d: %v", i, r.Err)
			}
		}
		msgs = again
	}
}

// end stops the writers: no write may be lost, and every shard is to have the last.
func (w *writers) end(e *Engine) {
	w.t.Helper()
	close(w.stop)
	w.work.Wait()
	s, revision, err := e.Settings(w.t.Context(), "q")
	if err != nil || s.DeadMax < w.done || s.DeadMax > w.done+w.unsure {
		w.t.Errorf("%d writes and perhaps %d more come to %d, %v", w.done, w.unsure, s.DeadMax, err)
	}
	w.t.Logf("%d writes, %d unsure", w.done, w.unsure)
	if _, err := e.Queue(w.t.Context(), "q"); err != nil { // which brings them to all shards
		w.t.Error(err)
	}
	for _, is := range revisions(w.t, e, "q") {
		if is != revision {
			w.t.Errorf("a shard is at %s, not %s", is, revision)
		}
	}
}

// TestFaultSettingsReshard moves the slots of two shards while many write settings, and a
// rate and what may be leased at once are kept to.
func TestFaultSettingsReshard(t *testing.T) {
	t.Parallel()
	c := newClustered(t, "shards=2")
	const most = 6
	if _, err := c.engine.Configure(t.Context(), "q", engine.Settings{InFlight: most, Rate: 500, Burst: 100}, ""); err != nil {
		t.Fatal(err)
	}
	w := newWriters(t, c.URL())
	moved, leased := make(chan bool), 0
	w.work.Go(func() {
		began := time.Now()
		for n := 0; ; n++ {
			select {
			case <-moved:
				if m := 100 + 2 + int(500*time.Since(began).Seconds()); leased == 0 || leased > m {
					t.Errorf("%d were leased, at most %d may be", leased, m)
				}
				return
			default:
			}
			w.push(c.engine, plain("q", strconv.Itoa(2*n)), plain("q", strconv.Itoa(2*n+1)))
			g := enginetest.MustLease(t, c.engine, "q", 2*most)
			if leased += len(g.Messages); len(g.Messages) > most {
				t.Errorf("%d are leased at once", len(g.Messages))
			}
			for _, l := range g.Messages {
				if s := settle1(t, c.engine, engine.Settlement{Token: l.Token, Do: engine.Ack}); s.Err != nil {
					t.Error(s.Err)
				}
			}
		}
	})
	for range 2 {
		for _, s := range c.engine.queue("q").shards {
			for _, to := range c.Masters() {
				c.MoveSlot(c.slot(s), to)
			}
		}
		w.more(5)
	}
	close(moved)
	w.end(c.engine)
	if w.unsure > 0 {
		t.Errorf("%d writes failed", w.unsure)
	}
}

// TestFaultSettingsFailover kills the master once settings and a memory were answered with
// a replica that has them.
func TestFaultSettingsFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	e, other := openStore(t, s.URL(), "shards=2", "replicas=1"), openStore(t, s.URL())
	ctx := t.Context()
	m := plain("q", "k")
	m.Remember = time.Hour
	push(t, e, m)
	if s := settle1(t, e, engine.Settlement{Token: lease1(t, e, "q").Token, Do: engine.Ack}); s.Err != nil {
		t.Fatal(s.Err)
	}
	revision, err := e.Configure(ctx, "q", engine.Settings{DeadMax: 1}, "")
	if err != nil {
		t.Fatal(err)
	}
	master := s.Master()
	master.Kill()
	s.NewMaster(master)
	if is, now, err := other.Settings(ctx, "q"); err != nil || is.DeadMax != 1 || now != revision {
		t.Errorf("%+v at %s, %v", is, now, err)
	}
	if r, err := other.Push(ctx, []engine.Message{m}); err != nil || r[0].State != engine.Finished {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := other.Configure(ctx, "q", engine.Settings{DeadMax: 2}, revision); err != nil {
		t.Error(err)
	}
	if got := revisions(t, other, "q"); got[0] == revision || got[1] != got[0] {
		t.Errorf("revisions %s after %s", got, revision)
	}
}

// TestFaultSettingsFull: on a full server, settings can be written, and acked or cancelled
// messages leave their memories. A push is refused and changes nothing.
func TestFaultSettingsFull(t *testing.T) {
	t.Parallel()
	_, _, e, kept := fullRedis(t)
	ctx := t.Context()
	if _, err := e.Configure(ctx, "new", engine.Settings{DeadMax: 3}, "0"); err != nil {
		t.Error(err)
	}
	if _, err := e.Configure(ctx, "q", engine.Settings{InFlight: 4, DeadMax: 1, Rate: 1000, Burst: 1000}, "0"); err != nil {
		t.Error(err)
	}
	key := func(n int) engine.Ref { return engine.Ref{Queue: "q", Key: strconv.Itoa(n)} }
	if errs, err := e.Cancel(ctx, []engine.Ref{key(kept - 1)}); err != nil || errs[0] != nil {
		t.Error(errs, err)
	}
	g := enginetest.MustLease(t, e, "q", 10)
	if len(g.Messages) != 4 || !g.Held {
		t.Fatalf("%d leased, held %v", len(g.Messages), g.Held)
	}
	for i, l := range g.Messages {
		if s := settle1(t, e, engine.Settlement{Token: l.Token, Do: []engine.Action{engine.Ack, engine.Bury}[i%2]}); s.Err != nil {
			t.Error(s.Err)
		}
	}
	finished := map[string]engine.Ending{g.Messages[0].Key: engine.Acked, g.Messages[2].Key: engine.Acked, strconv.Itoa(kept - 1): engine.Cancelled}
	for key, want := range finished {
		if r, err := e.Push(ctx, []engine.Message{plain("q", key)}); err != nil || !errors.Is(r[0].Err, engine.ErrLimit) {
			t.Errorf("%+v, %v", r, err)
		}
		if i, err := e.Get(ctx, engine.Ref{Queue: "q", Key: key}); err != nil || i.Ending != want {
			t.Errorf("%+v, %v", i, err)
		}
	}
	if i, err := e.Queue(ctx, "q"); err != nil || i.Dead != 1 || i.Finished != 3 || i.Ready != int64(kept-5) {
		t.Errorf("%+v, %v", i, err)
	}
	if n, err := e.Purge(ctx, "q", engine.PurgeFinished); err != nil || n != int64(kept-5+3) {
		t.Errorf("%d, %v", n, err)
	}
}
