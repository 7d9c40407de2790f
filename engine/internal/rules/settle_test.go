package rules

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// A settlement gives its priority to a message that it keeps and whose lease it ends.
func TestSettlePriority(t *testing.T) {
	const own, given = 5, 9
	for do, want := range map[engine.Action]uint32{
		engine.Ack: own, engine.Extend: own, engine.Retry: given, engine.Snooze: given, engine.Release: given, engine.Bury: given,
	} {
		s := engine.Settlement{Do: do, When: &engine.When{}}
		if v := Settle(&s, &engine.Policy{Priority: own, MaxAttempts: 1}, 0, 1, time.UnixMilli(1)); v.Priority != own {
			t.Errorf("%v without a priority gives %d", do, v.Priority)
		}
		s.Priority = new(uint32(given))
		if v := Settle(&s, &engine.Policy{Priority: own, MaxAttempts: 1}, 0, 1, time.UnixMilli(1)); v.Priority != want {
			t.Errorf("%v gives %d, not %d", do, v.Priority, want)
		}
	}
}
