package enginetest

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestModel(t *testing.T) {
	clock := NewClock()
	Run(t, Harness{
		Clock: clock,
		Open:  func(*testing.T) engine.Engine { return NewModel(clock.Now) },
	})
}

func TestModelOnItsOwnClock(t *testing.T) {
	Run(t, Harness{
		Open:      func(*testing.T) engine.Engine { return NewModel(time.Now) },
		Histories: 2,
	})
}
