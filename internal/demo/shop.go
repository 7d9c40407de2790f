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
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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

// body is the body of a message. Only messages about an order have all of it.
type body struct {
	Order    int            `json:"order,omitempty"`
	Merchant string         `json:"merchant,omitempty"`
	Total    string         `json:"total,omitempty"` // with its currency
	Items    map[string]int `json:"items,omitempty"`
}

// open is what a new shop does first. Imports are paused, and nobody has written a worker for
// reports.
func (s *Shop) open(ctx context.Context) {
	_ = s.c.Pause(ctx, "price.import", 0) // if it fails, prices are imported
	for i := range 1200 {
		s.push(ctx, "subscription.renew", fmt.Sprintf("c-%04d", i), body{Total: "4.90 EUR"}, s.between(0, 365*24*time.Hour))
		s.push(ctx, "mail.digest", fmt.Sprintf("c-%04d", i), body{}, s.between(0, 30*24*time.Hour))
	}
	for i := range 24 {
		s.push(ctx, "report.export", fmt.Sprintf("day-%03d.pdf", i), body{}, s.between(0, past))
		s.push(ctx, "price.import", fmt.Sprintf("supplier-%03d.csv", i), body{}, s.between(0, past))
	}
	s.takeOrder(ctx)
}

// push pushes a message, due after a duration of the shop's calendar. It may fail: an operator
// may have limited the queue.
func (s *Shop) push(ctx context.Context, queue, key string, b body, in time.Duration, opts ...tarry.PushOption) {
	opts = append(opts, tarry.Key(key), tarry.In(s.scaled(in)))
	if _, err := tarry.NewTopic[body](queue).Push(ctx, s.c, b, opts...); err != nil {
		s.say(b.Order, "%v", err)
	}
}

// takeOrder takes an order, and plans the next: more by day than by night. Most are paid in
// time, a few too late, and the rest never.
func (s *Shop) takeOrder(ctx context.Context) {
	s.orders++
	b := body{
		Order: 41000 + s.orders, Merchant: merchants[s.rand.IntN(len(merchants))],
		Total: fmt.Sprintf("%d.%02d EUR", 8+s.rand.IntN(60), s.rand.IntN(100)),
		Items: map[string]int{fmt.Sprintf("A-%03d", s.rand.IntN(400)): 1 + s.rand.IntN(4)},
	}
	s.push(ctx, "order.unpaid", strconv.Itoa(b.Order), b, 30*time.Minute)
	s.say(b.Order, "order %d: made, %s; cancelled in 30 minutes unless it is paid", b.Order, b.Total)
	if s.rand.IntN(5) > 0 {
		s.after(s.between(time.Minute, 33*time.Minute), func(ctx context.Context) { s.pay(ctx, b) })
	}
	now := s.Calendar(s.Now())
	perHour := 5 + 60*max(0, math.Sin((now.Sub(now.Truncate(24*time.Hour)).Hours()-7)/17*math.Pi))
	s.after(time.Duration(s.rand.ExpFloat64()/perHour*float64(time.Hour)), s.takeOrder)
}

// pay pays an order. The shop takes the payment unless the order has been cancelled, or is just
// being cancelled.
func (s *Shop) pay(ctx context.Context, b body) {
	key := strconv.Itoa(b.Order)
	if err := s.c.Cancel(ctx, tarry.ByKey(key).Of("order.unpaid")); err != nil {
		s.say(b.Order, "order %d: paid too late; the money goes back", b.Order)
		return
	}
	s.say(b.Order, "order %d: paid in time; the cancellation is called off", b.Order)
	backoff := tarry.Backoff(s.scaled(15*time.Second), s.scaled(30*time.Second), s.scaled(3*time.Minute), s.scaled(10*time.Minute), s.scaled(30*time.Minute))
	s.push(ctx, "merchant.notify", key, b, 0, tarry.MaxAttempts(6), backoff, tarry.Header("event", "order.paid"), tarry.Header("merchant", b.Merchant))
	s.after(s.between(40*time.Minute, 100*time.Minute), func(ctx context.Context) { s.deliver(ctx, b.Order, key) })
}

// deliver ends a ride. Half of the customers rate it in time.
func (s *Shop) deliver(ctx context.Context, order int, key string) {
	s.push(ctx, "ride.rate", key, body{Order: order}, 48*time.Hour)
	s.say(order, "order %d: delivered; the ride gets five stars in 48 hours unless the customer rates it", order)
	s.after(s.between(0, 96*time.Hour), func(ctx context.Context) {
		stars := 1 + s.rand.IntN(5)
		if err := s.c.Cancel(ctx, tarry.ByKey(key).Of("ride.rate")); err == nil {
			s.say(order, "order %d: the customer gives %d of five stars", order, stars)
		}
	})
}

// job is what the shop does with a message that is due.
type job struct {
	takes time.Duration
	says  string // when it is done, with the message's key
}

var jobs = map[string]job{
	"order.unpaid":       {time.Second, "order %s: not paid in 30 minutes; cancelled"},
	"ride.rate":          {time.Second, "order %s: the ride was not rated in 48 hours; five stars"},
	"merchant.notify":    {5 * time.Second, "order %s: the merchant is notified"},
	"mail.digest":        {20 * time.Minute, "customer %s: this month's mail is sent"},
	"subscription.renew": {10 * time.Second, "customer %s: the subscription is renewed"},
	"price.import":       {20 * time.Minute, "prices of %s: imported"},
}

// worked are the queues from which the shop leases.
var worked = slices.Sorted(maps.Keys(jobs))

// work handles leased messages: it plans to settle each when its job is done.
func (s *Shop) work(leases []tarry.Lease) {
	for _, m := range leases {
		s.after(jobs[m.Queue].takes, func(ctx context.Context) { s.done(ctx, m) })
	}
}

// done settles a message whose job is done. Its lease may be lost: an operator may have buried
// it. Its body need not be an order: a visitor may have pushed it.
func (s *Shop) done(ctx context.Context, m tarry.Lease) {
	var b body
	_ = json.Unmarshal(m.Body, &b)
	to := tarry.Settlement{Token: m.Token, Do: tarry.DoAck}
	if m.Queue == "merchant.notify" {
		if to.Reason = s.trouble(b.Merchant); to.Reason != "" {
			to.Do = tarry.DoRetry
		}
	}
	got, err := s.c.Settle(ctx, []tarry.Settlement{to})
	switch {
	case err != nil || got[0].Err != nil:
	case to.Do == tarry.DoAck:
		s.say(b.Order, jobs[m.Queue].says, m.Key)
	case got[0].State == tarry.Dead:
		s.say(b.Order, "order %s: %s fails (%s); a dead letter after %d attempts", m.Key, b.Merchant, to.Reason, m.Attempt)
	default:
		again := (got[0].Until.Sub(s.Now()) * s.speed).Round(5 * time.Second)
		s.say(b.Order, "order %s: %s fails (%s); notified again in %s", m.Key, b.Merchant, to.Reason, tarry.FormatDuration(again))
	}
}

var merchants = []string{"Bella Napoli", "Curry House", "Green Wok", "Sushi Ko", "Taco Libre"}

// trouble returns the error that a merchant answers with; "": all is well. Most merchants fail
// for two hours a day.
func (s *Shop) trouble(merchant string) string {
	hour := s.Calendar(s.Now()).Hour()
	switch during := func(name string, from int) bool { return merchant == name && hour/2 == from/2 }; {
	case during("Taco Libre", 12):
		return "410 Gone: the endpoint was removed"
	case during("Bella Napoli", 14):
		return "dial tcp 192.0.2.7:443: connect: connection refused"
	case during("Sushi Ko", 16):
		return "401 Unauthorized: invalid signature"
	case during("Green Wok", 18), s.rand.IntN(20) == 0:
		return "503 Service Unavailable: upstream did not answer within 10s"
	}
	return ""
}
