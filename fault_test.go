package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// told is what OnError was told.
type told struct {
	info tarry.Info
	err  error
}

func TestOnErrorHearsWhatFails(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		handler func(context.Context) error
		settle  error // of all but extensions
		extend  error
		want    []error
	}{
		"nothing":         {handler: func(context.Context) error { return nil }},
		"snooze":          {handler: func(context.Context) error { return tarry.Snooze(time.Hour) }},
		"error":           {handler: func(context.Context) error { return boom }, want: []error{boom}},
		"buried":          {handler: func(context.Context) error { return tarry.Bury(boom) }, want: []error{boom}},
		"untold":          {handler: func(context.Context) error { return nil }, settle: tarry.ErrNotFound, want: []error{tarry.ErrNotFound}},
		"error, untold":   {handler: func(context.Context) error { return boom }, settle: tarry.ErrLeaseLost, want: []error{boom, tarry.ErrLeaseLost}},
		"lost on the way": {handler: func(ctx context.Context) error { <-ctx.Done(); return nil }, extend: tarry.ErrLeaseLost, want: []error{tarry.ErrLeaseLost}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
				err := tc.settle
				if in[0].Do == engine.Extend {
					err = tc.extend
				}
				if err != nil {
					return []engine.Settled{{Err: err}}, nil
				}
				return s.Engine.Settle(ctx, in)
			}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				var faults list[told]
				w := tarry.NewWorker(c, &tarry.WorkerConfig{OnError: func(m tarry.Info, err error) { faults.add(told{m, err}) }})
				var once atomic.Bool
				tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
					if once.Swap(true) {
						return nil
					}
					return tc.handler(ctx)
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				p := push(t, c, "q", "x", tarry.Key("k"), tarry.TTR(10*time.Second), tarry.MaxAttempts(1))
				pass(8 * time.Second)
				cancel()
				<-done
				got := faults.all()
				if len(got) != len(tc.want) {
					t.Fatalf("told %v, want %v", got, tc.want)
				}
				for i, f := range got {
					if !errors.Is(f.err, tc.want[i]) || f.info.ID != p.ID || f.info.Key != "k" || f.info.Attempt != 1 || f.info.Body != nil {
						t.Errorf("told %v of %+v, want %v", f.err, f.info, tc.want[i])
					}
				}
			})
		})
	}
}

func TestOnErrorHearsPanics(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var faults list[told]
		w := tarry.NewWorker(c, &tarry.WorkerConfig{OnError: func(m tarry.Info, err error) {
			faults.add(told{m, err})
			panic("it panics as well")
		}})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { panic("ouch") })
		stop := run(t, w)
		push(t, c, "q", "x", tarry.MaxAttempts(2), tarry.Backoff(time.Second))
		pass(time.Minute)
		stop()
		if faults.len() != 2 {
			t.Fatalf("told %d times, want 2", faults.len())
		}
		p, ok := errors.AsType[*tarry.PanicError](faults.all()[1].err)
		if !ok || p.Value != "ouch" || !strings.Contains(string(p.Stack), "fault_test.go") {
			t.Errorf("told %v", faults.all()[1].err)
		}
	})
}

// Handlers go on while OnError blocks; what it misses is counted in the log.
func TestOnErrorHoldsUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var log logged
		var heard, handled atomic.Int32
		open := make(chan struct{})
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Logger: log.logger(), OnError: func(tarry.Info, error) { <-open; heard.Add(1) }})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			handled.Add(1)
			return tarry.Bury(nil)
		})
		const n = 1500
		for i := range n {
			push(t, c, "q", fmt.Sprint(i))
		}
		stop := run(t, w)
		pass(time.Second)
		if handled.Load() != n {
			t.Errorf("%d of %d handled beside a hook that blocks", handled.Load(), n)
		}
		close(open)
		stop()
		missed := 0 // in one line, or in two if many were missed before the first call
		for _, n := range regexp.MustCompile(`missed=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
			more, _ := strconv.Atoi(n[1])
			missed += more
		}
		if heard.Load() != 1000 || missed != 500 {
			t.Errorf("heard %d; log: %s", heard.Load(), log.String())
		}
	})
}

// A worker whose hook never returns ends all the same.
func TestWorkerEndsBesideAHookThatBlocks(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		open := make(chan struct{})
		w := tarry.NewWorker(c, &tarry.WorkerConfig{OnError: func(tarry.Info, error) { <-open }})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return tarry.Bury(nil) })
		stop := run(t, w)
		push(t, c, "q", "x")
		pass(time.Second)
		start := time.Now()
		stop()
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("Run ended after %s", took)
		}
		close(open)
	})
}
