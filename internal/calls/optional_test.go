package calls

import (
	"errors"
	"testing"

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
			"list":            func() error { _, err := s.List(ctx, engine.ListQuery{}); return err },
		} {
			if err := call(); !errors.Is(err, engine.ErrUnsupported) {
				t.Errorf("%s, prompt %v: %v", name, prompt, err)
			}
		}
		s.Wait(0)
	}
}
