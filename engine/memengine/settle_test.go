package memengine

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Lease tells of a death by lapse once, and not of one that was undone.
func TestDiedIsToldOnce(t *testing.T) {
	e, c := newEngine(t)
	m := msg("q", "", 0)
	m.MaxAttempts = 1
	push(t, e, m, m)
	g := lease(t, e, "q", 2)
	c.Advance(time.Hour)
	if n, err := e.Queue(t.Context(), "q"); err != nil || n.Dead != 2 {
		t.Fatalf("%+v, %v", n, err)
	}
	settle(t, e, engine.Settlement{Token: g.Messages[0].Token, Do: engine.Ack})
	for _, want := range []int{1, 0} {
		if g := lease(t, e, "q", 2); g.Died != want {
			t.Errorf("died %d, want %d", g.Died, want)
		}
	}
}

func TestForgedTokens(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("q", "k", 0))
	good := lease(t, e, "q", 1).Messages[0].Token
	other := codec.Token{Queue: 1, ID: 1}.String()
	for _, bad := range []string{"", "x", good[:42], good + "A", "!" + good[1:], other, codec.Token{Queue: 9, ID: 1}.String()} {
		if s := settle(t, e, engine.Settlement{Token: bad, Do: engine.Ack}); !errors.Is(s.Err, engine.ErrLeaseLost) {
			t.Errorf("%q: %v, want ErrLeaseLost", bad, s.Err)
		}
	}
	if s := settle(t, e, engine.Settlement{Token: good, Do: engine.Ack}); s.Err != nil {
		t.Error(s.Err)
	}
}
