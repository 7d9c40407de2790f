//go:build linux

package redisengine

import (
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

func TestProcesses(t *testing.T) {
	t.Parallel()
	workertest.RunProcesses(t, func() string { return redistest.Start(t).URL() })
}

func TestPoison(t *testing.T) {
	t.Parallel()
	workertest.RunPoison(t, func() string { return redistest.Start(t).URL() })
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	workertest.RunSchedules(t, func() string { return redistest.Start(t).URL() })
}

func BenchmarkSchedules(b *testing.B) {
	c, err := tarry.Open(b.Context(), redistest.Start(b).URL(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	workertest.BenchSchedules(b, c)
}
