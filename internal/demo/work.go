package demo

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
)

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
