package wire

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schedule"
)

// A run is told of by its own message alone, not by one that has its key since.
func TestRunOf(t *testing.T) {
	due := time.Unix(1_900_000_000, 0)
	run := schedule.Run{ID: 7, Key: "a@2030-03-17T17:46:40Z"}
	m := engine.Info{ID: 7, State: engine.Dead, Due: due, Started: due.Add(time.Second), Died: due.Add(3 * time.Second), Attempt: 2, LastError: "no"}
	want := Run{Run: run, State: engine.Dead, Attempt: 2, Started: m.Started, Late: time.Second, Ended: m.Died, Ran: 2 * time.Second, Error: "no"}
	if got := RunOf(run, &m); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	m.ID = 8
	if got := RunOf(run, &m); got != (Run{Run: run}) {
		t.Errorf("of another message: %+v", got)
	}
}
