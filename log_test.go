package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// Without a Logger, panics and lost leases are heard where the program logs.
func TestDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log logged
	slog.SetDefault(log.logger())
	s := newStage()
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			return nil, engine.ErrUnavailable
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
			if m.Attempt == 1 {
				<-ctx.Done()
				panic("ouch")
			}
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "x", tarry.TTR(time.Second))
		pass(time.Minute)
		stop()
	})
	for _, line := range []string{"a handler panicked", "panicked: ouch", "leases could not be renewed", "a lease was lost while its handler ran"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the default log lacks %q: %s", line, log.String())
		}
	}
}

// logging runs a worker that is set up by nothing on n messages of each queue, and returns
// what its client logs.
func logging(t *testing.T, queues, n int, fails func(m *tarry.Message[string]) error, long time.Duration) (log *logged) {
	t.Helper()
	log = new(logged)
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(memengine.New(nil), &tarry.Config{Logger: log.logger()})
		w := tarry.NewWorker(c, nil)
		for q := range queues {
			name := fmt.Sprint("q", q)
			tarry.Handle(w, tarry.NewTopic[string](name), func(_ context.Context, m *tarry.Message[string]) error { return fails(m) })
			for range n {
				push(t, c, name, "x", tarry.MaxAttempts(3), tarry.Backoff(time.Second))
			}
		}
		stop := run(t, w)
		pass(long)
		stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

func alwaysFails(*tarry.Message[string]) error { return errors.New("no route to the mail server") }

// Failures and deaths are heard where the program logs, though nothing was set up.
func TestFailuresAndDeathsAreLogged(t *testing.T) {
	log := logging(t, 1, 1, alwaysFails, 10*time.Second).String()
	failed := strings.Index(log, "a handler failed")
	dead := strings.Index(log, "a message is dead")
	if failed < 0 || dead < failed || !strings.Contains(log, "no route to the mail server") || !strings.Contains(log, "queue=q0") || !strings.Contains(log, "attempt=3") {
		t.Errorf("the log says %s", log)
	}
	if log := logging(t, 1, 1, func(*tarry.Message[string]) error { return tarry.Bury(errors.New("hopeless")) }, time.Second).String(); !strings.Contains(log, "a message is dead") {
		t.Errorf("of a buried message the log says %s", log)
	}
	if log := logging(t, 1, 100, func(*tarry.Message[string]) error { return nil }, time.Second).String(); log != "" {
		t.Errorf("without failures the log says %s", log)
	}
}

// However much fails, the log has few lines, and their counts leave nothing out.
func TestLogOfManyFailuresIsShort(t *testing.T) {
	for _, queues := range []int{1, 2000} {
		t.Run(fmt.Sprint(queues, " queues"), func(t *testing.T) {
			const n = 2000
			log := logging(t, queues, n/queues, alwaysFails, 5*time.Minute).String()
			lines, failures, deaths := 0, 0, 0
			for line := range strings.Lines(log) {
				lines++
				var times int
				_, after, _ := strings.Cut(line, "times=")
				if _, err := fmt.Sscan(after, &times); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if strings.Contains(line, "a handler failed") {
					failures += times
				} else {
					deaths += times
				}
			}
			if failures != 3*n || deaths != n {
				t.Errorf("%d failures were told of %d, %d deaths of %d", failures, 3*n, deaths, n)
			}
			if lines > 150 {
				t.Errorf("%d lines in 5 minutes", lines)
			}
		})
	}
}

// Deaths that no handler saw are logged too.
func TestDeathsByLapseAreLogged(t *testing.T) {
	var log logged
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(memengine.New(nil), &tarry.Config{Logger: log.logger()})
		for range 30 {
			push(t, c, "q", "x", tarry.MaxAttempts(1))
		}
		if _, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 30, LeaseOptions: tarry.LeaseOptions{TTR: time.Second}}); err != nil {
			t.Fatal(err)
		}
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
		stop := run(t, w)
		pass(10 * time.Second)
		stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if n, _ := counted(t, log.String(), "their last lease lapsed"); n != 30 {
		t.Errorf("the log says %s", log.String())
	}
}

// counted returns the sum of the counts in a log's lines with a text, and how many lines there are.
func counted(t *testing.T, log, text string) (sum, lines int) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.Contains(line, text) {
			continue
		}
		var times int
		_, after, _ := strings.Cut(line, "times=")
		if _, err := fmt.Sscan(after, &times); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sum, lines = sum+times, lines+1
	}
	return sum, lines
}

// What is counted is logged when the worker ends, though the client stays open.
func TestEndOfAWorkerLogsWhatItCounted(t *testing.T) {
	var log logged
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(memengine.New(nil), &tarry.Config{Logger: log.logger()})
		defer c.Close()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return errors.New("no route") })
		for range 100 {
			push(t, c, "q", "x", tarry.MaxAttempts(1))
		}
		stop := run(t, w)
		pass(time.Second)
		stop()
		for _, text := range []string{"a handler failed", "a message is dead"} {
			if n, lines := counted(t, log.String(), text); n != 100 || lines > 11 {
				t.Errorf("%q: %d counted in %d lines: %s", text, n, lines, log.String())
			}
		}
	})
}

// Lost leases and stuck handlers get a line at once, and then one a minute.
func TestLostLeasesAndStuckHandlersTakeFewLines(t *testing.T) {
	var log logged
	s := newStage()
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			return nil, engine.ErrUnavailable
		}
		return s.Engine.Settle(ctx, in)
	}
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(s, &tarry.Config{Logger: log.logger()})
		w := tarry.NewWorker(c, nil)
		release := make(chan struct{})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			<-release
			return nil
		})
		stop := run(t, w)
		for range 50 {
			push(t, c, "q", "x", tarry.TTR(time.Second))
		}
		pass(10 * time.Second)
		for _, text := range []string{"a lease was lost while", "a handler is stuck"} {
			if n, lines := counted(t, log.String(), text); n != 1 || lines != 1 {
				t.Errorf("%q: at first %d in %d lines", text, n, lines)
			}
		}
		pass(time.Minute)
		for _, text := range []string{"a lease was lost while", "a handler is stuck"} {
			if n, lines := counted(t, log.String(), text); n != 50 || lines != 2 {
				t.Errorf("%q: after a minute %d in %d lines", text, n, lines)
			}
		}
		close(release)
		stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// stubborn is a log handler that blocks in every call until it is released.
type stubborn struct {
	slog.Handler
	release chan struct{}
}

func (h stubborn) Enabled(ctx context.Context, l slog.Level) bool {
	<-h.release
	return h.Handler.Enabled(ctx, l)
}

// Handlers, settlements and leases wait for no log, whatever call of it blocks.
func TestABlockedLogHoldsUpNothing(t *testing.T) {
	var log logged
	synctest.Test(t, func(t *testing.T) {
		h := stubborn{log.logger().Handler(), make(chan struct{})}
		c := tarry.New(memengine.New(nil), &tarry.Config{Logger: slog.New(h)})
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return errors.New("no route") })
		for range 10 {
			push(t, c, "q", "x", tarry.MaxAttempts(2), tarry.Backoff(time.Second))
		}
		stop := run(t, w)
		pass(10 * time.Second)
		if q, err := c.Queue(t.Context(), "q"); err != nil || q.Dead != 10 {
			t.Errorf("%d of 10 messages are dead: %v", q.Dead, err)
		}
		close(h.release)
		stop()
		if n, _ := counted(t, log.String(), "a message is dead"); n != 10 {
			t.Errorf("%d deaths of 10 are in the log: %s", n, log.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// slog.DiscardHandler turns the log off, whatever slog's default is.
func TestDiscardHandlerTurnsTheLogOff(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log logged
	slog.SetDefault(log.logger())
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(memengine.New(nil), &tarry.Config{Logger: slog.New(slog.DiscardHandler)})
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error { return alwaysFails(m) })
		p := push(t, c, "q", "x", tarry.MaxAttempts(1))
		stop := run(t, w)
		pass(2 * time.Minute)
		stop()
		if m, err := c.Get(t.Context(), tarry.Ref{Queue: "q", ID: p.ID}); err != nil || m.State != tarry.Dead {
			t.Errorf("the message is %v: %v", m.State, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if log.String() != "" {
		t.Errorf("the log says %s", log.String())
	}
}
