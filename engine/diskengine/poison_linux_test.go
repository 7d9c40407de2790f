package diskengine_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest/workertest"
)

func TestPoison(t *testing.T) {
	t.Parallel()
	workertest.RunPoison(t, func() string { return "disk:" + t.TempDir() })
}
