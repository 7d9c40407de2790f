package memengine_test

import (
	"testing"
	"testing/synctest"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestRepeatedPushesRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memengine.New(nil)
		workertest.RunRepeats(t, 600, e, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkSchedules(b *testing.B) {
	c, err := tarry.Open(b.Context(), "mem:", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	workertest.BenchSchedules(b, c)
}
