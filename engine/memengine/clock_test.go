package memengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// newEngine returns an engine whose clock stands until the test moves it.
func newEngine(t *testing.T) (*Engine, *enginetest.Clock) {
	t.Helper()
	c := enginetest.NewClock()
	e := New(&Config{Now: c.Now})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return e, c
}

// msg is a message to push, due in d.
func msg(queue, key string, d time.Duration) engine.Message {
	return engine.Message{
		Queue: queue, Key: key, Due: engine.When{In: d},
		Content: engine.Content{Body: []byte(key)},
		Terms:   engine.Terms{MaxAttempts: 3, TTR: time.Minute},
	}
}

var (
	push   = enginetest.MustPush
	lease  = enginetest.MustLease
	settle = enginetest.MustSettle
)
