package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry/engine"
)

func TestChecks(t *testing.T) {
	list := func(s engine.State, limit int) error {
		return (&engine.ListQuery{State: s, Limit: limit}).Check()
	}
	settle := func(do engine.Action) error { return (&engine.Settlement{Do: do}).Check() }
	for what, err := range map[string]error{
		"no state": list(engine.Gone, 1), "no limit": list(engine.Ready, 0), "too many": list(engine.Ready, engine.MaxPage+1),
		"half a minute": engine.CheckForecast("q", 30*time.Second, time.Hour), "half a step": engine.CheckForecast("q", time.Hour, 90*time.Minute),
		"too many steps": engine.CheckForecast("q", time.Minute, (engine.MaxSteps+1)*time.Minute),
		"no action":      settle(0), "an unknown action": settle(engine.Extend + 1), "snooze without when": settle(engine.Snooze),
	} {
		if !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	for what, err := range map[string]error{
		"list": list(engine.Dead, engine.MaxPage), "forecast": engine.CheckForecast("q", time.Minute, engine.MaxSteps*time.Minute), "ack": settle(engine.Ack),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestKeptReasonLeavesNoHalfCharacter(t *testing.T) {
	s := engine.Settlement{Reason: "x" + strings.Repeat("é", engine.MaxReason)}
	if got := s.KeptReason(); len(got) != engine.MaxReason-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes kept, valid %v", len(got), utf8.ValidString(got))
	}
}

func TestWordsAreReadAsTheyAreWritten(t *testing.T) {
	readBack(t, engine.Gone, engine.Finished, engine.ParseState)
	readBack(t, engine.Reject, engine.Rearm, engine.ParseConflict)
	readBack(t, engine.Created, engine.Replaced, engine.ParseOutcome)
	readBack(t, engine.Acked, engine.Expired, engine.ParseEnding)
	readBack(t, engine.Ack, engine.Extend, engine.ParseAction)
}

// readBack checks that parse knows the values from first to last alone.
func readBack[V interface {
	~uint8
	String() string
}](t *testing.T, first, last V, parse func(string) (V, error)) {
	t.Helper()
	for v := range last + 3 {
		got, err := parse(v.String())
		if known := v >= first && v <= last; (err == nil) != known || known && got != v || err != nil && !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%T %v is read as %v, %v", v, v, got, err)
		}
	}
}
