package memengine

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// A message that a lapse made dead gave its key away; it cannot come back beside
// the new one, yet it can be acked.
func TestLateSettlementOfDead(t *testing.T) {
	e, c := newEngine(t)
	m := msg("q", "k", 0)
	m.MaxAttempts = 1
	push(t, e, m)
	token := lease(t, e, "q", 1).Messages[0].Token
	c.Advance(time.Minute)
	push(t, e, msg("q", "k", time.Hour))
	for _, do := range []engine.Action{engine.Release, engine.Extend, engine.Snooze} {
		s := settle(t, e, engine.Settlement{Token: token, Do: do, When: &engine.When{}})
		if !errors.Is(s.Err, engine.ErrLeaseLost) {
			t.Errorf("action %d: %v, want ErrLeaseLost", do, s.Err)
		}
	}
	if s := settle(t, e, engine.Settlement{Token: token, Do: engine.Ack}); s.Err != nil || s.State != engine.Gone {
		t.Errorf("ack: %+v", s)
	}
	n, err := e.Queue(t.Context(), "q")
	if err != nil || n.Scheduled != 1 || n.Dead != 0 || len(e.queues["q"].deadKeys) != 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

// What expired after its lease lapsed is gone, for its holder too.
func TestLateSettlementOfExpired(t *testing.T) {
	e, c := newEngine(t)
	m := msg("q", "k", 0)
	m.ExpireAfter = time.Second
	push(t, e, m)
	token := lease(t, e, "q", 1).Messages[0].Token
	c.Advance(time.Hour)
	if s := settle(t, e, engine.Settlement{Token: token, Do: engine.Ack}); !errors.Is(s.Err, engine.ErrLeaseLost) {
		t.Errorf("ack: %v, want ErrLeaseLost", s.Err)
	}
	push(t, e, m)
	if g := lease(t, e, "q", 1); g.Expired != 1 || len(g.Messages) != 1 {
		t.Errorf("%+v", g)
	}
}

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

func TestReasonIsCut(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("q", "k", 0))
	token := lease(t, e, "q", 1).Messages[0].Token
	settle(t, e, engine.Settlement{Token: token, Do: engine.Bury, Reason: "x" + strings.Repeat("é", engine.MaxReason)})
	info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"})
	if err != nil || len(info.LastError) != engine.MaxReason-1 || !utf8.ValidString(info.LastError) {
		t.Errorf("%d bytes kept, %v", len(info.LastError), err)
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
