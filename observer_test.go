package tarry_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

// gate is something of the user's that can be made to block.
type gate struct{ shut atomic.Pointer[chan struct{}] }

func (g *gate) close() {
	c := make(chan struct{})
	g.shut.Store(&c)
}

func (g *gate) open() { close(*g.shut.Swap(nil)) }

func (g *gate) pass() {
	if c := g.shut.Load(); c != nil {
		<-*c
	}
}

// blockingLog is a log whose writer may block.
type blockingLog struct {
	gate
	logged
}

func (l *blockingLog) Write(p []byte) (int, error) {
	l.pass()
	return l.logged.Write(p)
}

// What the user's observer or logger does: leases are renewed, results told, and
// nothing is handled twice.
func TestWorkerRenewsWhileItsObserverOrLoggerBlocks(t *testing.T) {
	for _, what := range []string{"observer", "logger"} {
		t.Run(what, func(t *testing.T) {
			inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
				var rec record
				var observer gate
				var log blockingLog
				w := tarry.NewWorker(c, &tarry.WorkerConfig{
					LeaseTTR: 10 * time.Second,
					Logger:   slog.New(slog.NewTextHandler(&log, nil)),
					Observer: func(e tarry.Event) { observer.pass(); rec.observe(e) },
				})
				var calls atomic.Int32
				tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
					calls.Add(1)
					select {
					case <-time.After(95 * time.Second):
					case <-ctx.Done():
						t.Errorf("ended: %v", context.Cause(ctx))
					}
					return nil
				})
				stop := run(t, w)
				if what == "observer" {
					observer.close()
				} else {
					log.close()
				}
				p := push(t, c, "q", "x")
				pass(time.Second)
				// Renewals fail for a while, as do the first acks: both are logged.
				e.befall(fails, "Extend", "Settle", "Lease")
				pass(5 * time.Second)
				e.befall(fine, "Extend", "Lease")
				pass(90 * time.Second)
				e.befall(fine, "Settle")
				pass(5 * time.Second)
				gone(t, c, p)
				if n := calls.Load(); n != 1 {
					t.Errorf("%d handlers ran, want 1", n)
				}
				if what == "observer" {
					if n := len(rec.of(tarry.Started)); n != 0 {
						t.Error("the observer did not block; the test shows nothing")
					}
					observer.open()
				} else {
					if log.String() != "" {
						t.Error("the log did not block; the test shows nothing")
					}
					log.open()
				}
				stop()
				rec.one(t, tarry.Started)
				rec.one(t, tarry.Acked)
				if what == "logger" && log.String() == "" {
					t.Error("nothing was logged")
				}
			})
		})
	}
}

// An observer that does not keep up holds back what is leased, so that what it has
// not been told is bounded and nothing is left out.
func TestWorkerLeasesNoMoreThanItsObserverHears(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		const n = 10_000
		for range n {
			push(t, c, "q", "")
		}
		var observer gate
		var rec record
		observer.close()
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10, Observer: func(e tarry.Event) { observer.pass(); rec.observe(e) }})
		var handled atomic.Int32
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { handled.Add(1); return nil })
		stop := run(t, w)
		pass(time.Minute)
		if h := handled.Load(); h < 1000 || h > 5000 {
			t.Errorf("%d handled while the observer heard of none; want a few thousand", h)
		}
		observer.open()
		synctest.Wait()
		if h := handled.Load(); h != n {
			t.Errorf("%d of %d handled", h, n)
		}
		stop()
		for _, kind := range []tarry.EventKind{tarry.Started, tarry.Acked} {
			if got := len(rec.of(kind)); got != n {
				t.Errorf("%d times %s, want %d", got, kind, n)
			}
		}
	})
}

// Run and Close end also beside an observer or logger that never returns.
func TestWorkerEndsBesideAnObserverThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTroubled()
		var observer gate
		var log blockingLog
		observer.close()
		log.close()
		c := tarry.New(e, &tarry.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		w := withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(tarry.Event) { observer.pass() }}))
		stop := run(t, w)
		push(t, c, "q", "x")
		e.befall(fails, "Lease")
		pass(time.Minute)
		start := time.Now()
		stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("ended in %s", took)
		}
		observer.open()
		log.open()
		synctest.Wait()
	})
}

// A log that blocks loses what is too much, and says how much that was.
func TestLogThatBlocksSaysWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTroubled()
		var log blockingLog
		log.close()
		c := tarry.New(e, &tarry.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)).With("who", "me")})
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error { panic(m.Body) })
		stop := run(t, w)
		for i := range 1500 {
			push(t, c, "q", fmt.Sprint("ouch ", i))
		}
		synctest.Wait()
		log.open()
		synctest.Wait()
		stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "a handler panicked"); n != 1000 {
			t.Errorf("%d lines were kept, want 1000", n)
		}
		for _, want := range []string{"who=me", "missed=500"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q", want)
			}
		}
	})
}
