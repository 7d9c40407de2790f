package diskengine_test

import (
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/enginetest/workertest"
)

func TestRepeatedPushesRunOnce(t *testing.T) {
	t.Parallel()
	e := place{vfs.OS{}, t.TempDir(), diskengine.Config{Logger: quiet}, small}.open(t)
	defer e.Close()
	workertest.RunRepeats(t, 500, e, e)
}

func BenchmarkSchedules(b *testing.B) {
	c, err := tarry.Open(b.Context(), "disk:"+b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	workertest.BenchSchedules(b, c)
}
