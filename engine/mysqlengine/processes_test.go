//go:build linux

package mysqlengine

import (
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestProcesses(t *testing.T) {
	t.Parallel()
	workertest.RunProcesses(t, func() string { return mysqltest.Shared(t) + "?migrate=true" })
}

func TestPoison(t *testing.T) {
	t.Parallel()
	workertest.RunPoison(t, func() string { return mysqltest.Shared(t) + "?migrate=true" })
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	workertest.RunSchedules(t, func() string { return mysqltest.Shared(t) + "?migrate=true" })
}

func BenchmarkSchedules(b *testing.B) {
	c, err := tarry.Open(b.Context(), mysqltest.Shared(b)+"?migrate=true", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	workertest.BenchSchedules(b, c)
}
