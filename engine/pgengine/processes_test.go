//go:build linux

package pgengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestProcesses(t *testing.T) {
	t.Parallel()
	workertest.RunProcesses(t, func() string { return pgtest.Shared(t) + "&migrate=true" })
}

func TestPoison(t *testing.T) {
	t.Parallel()
	workertest.RunPoison(t, func() string { return pgtest.Shared(t) + "&migrate=true" })
}
