package calls

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// What an engine cannot do is refused, whether its calls are left or not.
func TestCallsThatAnEngineDoesNotHave(t *testing.T) {
	for _, prompt := range []bool{true, false} {
		s := Wrap(struct{ engine.Engine }{}, prompt, nil)
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"push atomically": func() error { _, err := s.PushAtomic(ctx, nil); return err },
			"wait":            func() error { _, err := s.LeaseWait(ctx, engine.Wait{}); return err },
			"claim":           func() error { _, err := s.Claim(ctx, engine.Ref{}, engine.Want{}); return err },
			"peek":            func() error { _, err := s.Peek(ctx, nil); return err },
			"find":            func() error { _, err := s.Find(ctx, nil); return err },
			"list":            func() error { _, err := s.List(ctx, engine.ListQuery{}); return err },
			"queue":           func() error { _, err := s.Queue(ctx, "q"); return err },
			"queues":          func() error { _, _, err := s.Queues(ctx, "", 1); return err },
			"forecast":        func() error { _, err := s.Forecast(ctx, "q", time.Minute, time.Hour); return err },
			"pause":           func() error { return s.Pause(ctx, "q", 0) },
			"resume":          func() error { return s.Resume(ctx, "q") },
			"purge":           func() error { _, err := s.Purge(ctx, "q", 0); return err },
			"redrive":         func() error { _, err := s.Redrive(ctx, "q", nil, 0); return err },
			"settings":        func() error { _, _, err := s.Settings(ctx, "q"); return err },
			"configure":       func() error { _, err := s.Configure(ctx, "q", engine.Settings{}, ""); return err },
		} {
			if err := call(); !errors.Is(err, engine.ErrUnsupported) {
				t.Errorf("%s, prompt %v: %v", name, prompt, err)
			}
		}
		s.Wait(0)
	}
}
