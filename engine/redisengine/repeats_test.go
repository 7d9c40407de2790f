package redisengine

import (
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

func TestRepeatedPushesRunOnce(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	one, two := openURL(t, url, "shards=2"), openURL(t, url, "shards=2")
	defer one.Close()
	defer two.Close()
	workertest.RunRepeats(t, 500, one, two)
}
