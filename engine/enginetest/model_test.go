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
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return e.(*Model).reopened()
		},
	})
}

func TestModelOnItsOwnClock(t *testing.T) {
	Run(t, Harness{
		Open:      func(*testing.T) engine.Engine { return NewModel(time.Now) },
		Histories: 2,
	})
}

// reopened is a model of what a durable engine holds when it has been closed.
func (m *Model) reopened() *Model {
	again := m.clone()
	for _, x := range again.msgs {
		switch over := x.State == engine.Leased && !x.remote; {
		case over && x.Attempt >= x.MaxAttempts:
			x.fail(m.now(), engine.Lapsed)
			x.die(m.now())
		case over && m.now().Before(x.Deadline):
			x.Deadline = instant(m.now().UnixMilli())
		}
	}
	return again
}
