package duration

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("a minute took %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if Sleep(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("a context of a second took %s", time.Since(began))
		}
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, token, done := time.Now(), make(chan struct{}, 1), make(chan struct{})
		token <- struct{}{}
		close(done)
		if !Await(token, 0) || !Await(done, -time.Second) {
			t.Error("what is there already is not seen without a wait")
		}
		if Await(token, time.Second) || time.Since(began) != time.Second {
			t.Errorf("a second took %s", time.Since(began))
		}
		time.AfterFunc(time.Second, func() { token <- struct{}{} })
		if !Await(token, time.Minute) || time.Since(began) != 2*time.Second {
			t.Errorf("what came after a second took %s", time.Since(began)-time.Second)
		}
	})
}

func TestReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Returns(func() { time.Sleep(time.Second) }, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("a second took %s", time.Since(began))
		}
		var ended atomic.Bool
		if Returns(func() { time.Sleep(time.Minute); ended.Store(true) }, time.Second) || ended.Load() {
			t.Error("a minute is over after a second")
		}
		time.Sleep(time.Hour)
		if !ended.Load() {
			t.Error("it did not go on")
		}
	})
}
