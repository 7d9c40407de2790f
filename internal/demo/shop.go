// Package demo is a made-up shop on tarry, for tarry demo and for the dashboard's tests. It
// takes orders, cancels those that nobody pays, rates rides that nobody rates, and notifies
// merchants, which fail now and then.
//
// A shop has a past from the start: Play runs the same code through four days, by a clock
// that it moves itself. Run goes on from there in real time. Its random numbers are the same
// each time.
package demo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/timer"
)

// Speed is how many times faster than life a shop runs in tarry demo: 30 minutes take 5
// seconds, and 48 hours take 8 minutes.
const Speed = 360

// past is how much of its own time a shop plays through at the start.
const past = 4 * 24 * time.Hour

// opened is the time at which a shop's past begins, by the shop's own calendar: a Thursday.
var opened = time.Date(2030, 1, 3, 11, 0, 0, 0, time.UTC)

// ttr is how long the shop's leases last: longer than any job takes, at any speed.
const ttr = time.Hour

// Shop is a made-up shop. Make it with New. Only Now may be called while another call runs.
type Shop struct {
	// Say is called for what happens, with the time by the shop's calendar and the number of
	// the order; 0: it is about no order.
	Say func(at time.Time, order int, what string)

	c      *tarry.Client
	speed  time.Duration
	begin  time.Time                          // of the past
	clock  atomic.Pointer[time.Time]          // while the past is played; nil: time.Now
	rand   *rand.Rand                         // the same numbers each time
	plans  *timer.Heap[func(context.Context)] // what customers and the shop will do
	orders int
}

// New returns a shop that runs at so many times life's speed, at least 1.
func New(speed int) *Shop {
	return &Shop{Say: func(time.Time, int, string) {}, speed: time.Duration(speed), rand: rand.New(rand.NewPCG(1, 2)), plans: timer.NewHeap[func(context.Context)](time.Now())}
}

// Now is the shop's clock, which its engine and its trends need too. It differs from
// time.Now during Play.
func (s *Shop) Now() time.Time {
	if at := s.clock.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// Calendar returns what the shop's calendar shows at a time of its clock.
func (s *Shop) Calendar(at time.Time) time.Time { return opened.Add(at.Sub(s.begin) * s.speed) }

// Play opens the shop on an empty store, and plays its past up to the present. Nobody else
// may use the store meanwhile.
func (s *Shop) Play(ctx context.Context, c *tarry.Client) error {
	s.c, s.begin = c, time.Now().Add(-past/s.speed)
	s.clock.Store(&s.begin)
	defer s.clock.Store(nil)
	s.open(ctx)
	var wants []engine.Want
	for _, queue := range worked {
		wants = append(wants, engine.Want{Queue: queue, Max: 100, TTR: ttr})
	}
	for {
		next := s.act(ctx)
		g, err := c.LeaseNow(ctx, wants)
		if err != nil {
			return err
		}
		for _, q := range g.Queues {
			if len(q.Messages) > 0 {
				next = s.Now()
			} else if !q.NextDue.IsZero() && q.NextDue.Before(next) {
				next = q.NextDue
			}
			s.work(q.Messages)
		}
		if next.After(s.Now()) { // as late as a quiet machine would be
			next = next.Add(time.Duration(math.Exp(s.rand.NormFloat64()*0.7) * float64(time.Millisecond)))
		}
		if next.After(time.Now()) {
			return nil
		}
		s.clock.Store(&next)
	}
}

// Run runs the shop after Play, until ctx ends; then its error is that of ctx.
func (s *Shop) Run(ctx context.Context) error {
	for {
		wait := max(0, time.Until(s.act(ctx)))
		got, err := s.c.Lease(ctx, tarry.LeaseRequest{Queues: worked, Max: 100, Wait: wait, LeaseOptions: tarry.LeaseOptions{TTR: ttr}})
		if err != nil {
			return err
		}
		s.work(got.Messages)
	}
}

// act does what is planned for now, and returns when the next plan is due.
func (s *Shop) act(ctx context.Context) time.Time {
	for plan, ok := s.plans.Poll(s.Now()); ok; plan, ok = s.plans.Poll(s.Now()) {
		plan.Value(ctx)
	}
	next, _ := s.plans.Next() // customers always plan to order
	return next
}

// after plans what to do once a duration of the shop's calendar has passed.
func (s *Shop) after(d time.Duration, do func(context.Context)) {
	s.plans.Schedule(s.Now().Add(s.scaled(d)), do)
}

// scaled returns how long a duration of the shop's calendar takes.
func (s *Shop) scaled(d time.Duration) time.Duration {
	return max((d / s.speed).Round(time.Millisecond), time.Millisecond)
}

func (s *Shop) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rand.Int64N(int64(to-from)))
}

func (s *Shop) say(order int, format string, args ...any) {
	s.Say(s.Calendar(s.Now()), order, fmt.Sprintf(format, args...))
}
