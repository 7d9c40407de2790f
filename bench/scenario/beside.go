package scenario

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pushBeside pushes far-away messages to another queue at the rate of the flag beside, in single
// calls of concurrent clients. stop ends the pushes, and reports the rate reached and how long
// they took, each from when the rate has it begin.
func pushBeside(b *testing.B, s System) (stop func()) {
	if *beside <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(b.Context())
	var (
		pushes  = pace{rate: *beside, began: time.Now()}
		first   = 1<<40 + rand.IntN(1<<40) // no other message has these keys
		soonest = pushes.began.Add(24 * time.Hour)
		took    [Clients][]time.Duration
		failed  = make(chan error, Clients)
		callers sync.WaitGroup
	)
	for client := range Clients {
		callers.Go(func() {
			for {
				n := pushes.next(ctx)
				if ctx.Err() != nil {
					return
				}
				// A push under way is allowed to finish.
				if err := s.Push(context.WithoutCancel(ctx), "beside", first+n, soonest.Add(far(n))); err != nil {
					failed <- err
					return
				}
				took[client] = append(took[client], time.Since(pushes.at(int64(n))))
			}
		})
	}
	return func() {
		lasted := time.Since(pushes.began)
		cancel()
		callers.Wait()
		close(failed)
		Must(b, <-failed)
		all := slices.Concat(took[:]...)
		Report(b, float64(len(all))/lasted.Seconds(), "beside/s")
		reportTimes(b, "beside-", all)
	}
}

// pace starts calls at a rate.
type pace struct {
	rate  int
	began time.Time
	given atomic.Int64
}

// next waits until the next call is due, or until ctx ends, and returns its number. A late
// caller does not wait, and so catches up.
func (p *pace) next(ctx context.Context) int {
	n := p.given.Add(1) - 1
	wait := time.Until(p.at(n))
	if wait <= 0 {
		return int(n)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return int(n)
}

func (p *pace) at(n int64) time.Time {
	return p.began.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
}

// Steady pushes at the rate of the flag beside for Span.
func Steady(b *testing.B, open Open) {
	Once(b)
	s := open(b)
	cpu := CPU()
	stop := pushBeside(b, s)
	time.Sleep(*Span)
	stop()
	Report(b, (CPU() - cpu).Seconds(), "cpu-s")
}
