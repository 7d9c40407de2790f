package logengine_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/logengine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
)

func TestRepeatedPushesRunOnce(t *testing.T) {
	t.Parallel()
	e := place{disk.OS{}, t.TempDir(), logengine.Config{Logger: quiet}, small}.open(t)
	defer e.Close()
	workertest.RunRepeats(t, 500, e, e)
}
