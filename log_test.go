package tarry_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
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
