package httpengine_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest/workertest"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestRepeatedPushesRunOnce(t *testing.T) {
	url := serve(t, memengine.New(nil))
	one, two := open(t, url), open(t, url)
	defer one.Close()
	defer two.Close()
	workertest.RunRepeats(t, 500, one, two)
}
