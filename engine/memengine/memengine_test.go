package memengine_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestConformance(t *testing.T) {
	clock := enginetest.NewClock()
	enginetest.Run(t, enginetest.Harness{
		Open:  func(*testing.T) engine.Engine { return memengine.New(&memengine.Config{Now: clock.Now}) },
		Clock: clock,
	})
}

func TestConformanceOnRealClock(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(*testing.T) engine.Engine { return memengine.New(nil) },
	})
}

func BenchmarkEngine(b *testing.B) {
	enginetest.Bench(b, func(*testing.B) engine.Engine { return memengine.New(nil) })
}

func TestPageOfManyQueues(t *testing.T) {
	e := memengine.New(nil)
	defer e.Close()
	enginetest.PageOfManyQueues(t, e)
}
