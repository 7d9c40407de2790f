package schedule_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest/scheduletest"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestAYearWithDeaths(t *testing.T) {
	scheduletest.RunYear(t, func(*testing.T) scheduletest.Store {
		return &scheduletest.Memory{Engine: memengine.New(nil)}
	})
}
