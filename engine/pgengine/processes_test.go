//go:build linux

package pgengine

import (
	"testing"

	"github.com/tarryhq/tarry"
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

func TestSchedules(t *testing.T) {
	t.Parallel()
	workertest.RunSchedules(t, func() string { return pgtest.Shared(t) + "&migrate=true" })
}

func BenchmarkSchedules(b *testing.B) {
	c, err := tarry.Open(b.Context(), pgtest.Shared(b)+"&migrate=true", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	workertest.BenchSchedules(b, c)
}
