package demo

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
)

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
