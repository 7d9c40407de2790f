package redisengine

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
)

// lateContext has ended once all others in its bubble rest.
type lateContext struct{ context.Context }

func (c lateContext) Done() <-chan struct{} {
	synctest.Wait()
	return c.Context.Done()
}

// answered is a sender that answers at once.
type answered struct{}

func (answered) DoMulti(context.Context, ...rueidis.Completed) []rueidis.RedisResult {
	return make([]rueidis.RedisResult, 1)
}

// An answer counts even if the process was not scheduled until its context had ended: it may
// have leases.
func TestAnAnswerCountsAtTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := new(Engine)
		for range 100 {
			if e.leavingTrip(lateContext{ctx}, answered{}) == nil {
				t.Fatal("an answer was dropped")
			}
		}
	})
}
