package ui_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// order is one of a shop.
type order struct {
	id        string
	purchased time.Time
	approved  time.Time // its payment; zero: never
	asked     time.Time // for a review
}

// madeOrders makes n orders of two years, much like those of a real shop: more by day than
// by night, and fewer at the weekend. Most are paid within half an hour, some after days, a
// few never.
func madeOrders(n int) (all []order) {
	r := rand.New(rand.NewPCG(5, 6))
	begin := time.Date(2030, 1, 7, 0, 0, 0, 0, time.UTC)
	for len(all) < n {
		at := begin.Add(time.Duration(r.Int64N(int64(100 * 7 * 24 * time.Hour))))
		share := 0.04 + 0.96*max(0, math.Sin(float64(at.Hour()-7)/17*math.Pi))
		if wd := at.Weekday(); wd == time.Saturday || wd == time.Sunday {
			share *= 0.7
		}
		if r.Float64() > share {
			continue
		}
		o := order{id: fmt.Sprintf("%08x", r.Uint32()), purchased: at}
		switch x := r.Float64(); {
		case x < 0.7:
			o.approved = at.Add(time.Duration(10+r.IntN(20)) * time.Minute)
		case x < 0.98:
			o.approved = at.Add(time.Duration(math.Exp(r.NormFloat64()*0.8) * float64(20*time.Hour)))
		}
		o.asked = at.Add(time.Duration(8+r.IntN(10)) * 24 * time.Hour).Truncate(24 * time.Hour)
		all = append(all, o)
	}
	return all
}

// payWithin is how long an order waits for its payment.
const payWithin = 24 * time.Hour

// replay has the orders happen up to now, half of them, as if all came within three days at
// their time of day: who has not paid within payWithin is cancelled, and who was asked for a
// review is taken to be content after 48 h. What went is in no trend.
func (w *world) replay(t *testing.T) {
	t.Helper()
	c := tarry.New(w.c.Engine(), nil)
	defer c.Close()
	const days = 3 * 24 * time.Hour
	now := time.Now()
	begin := now.Add(-days / 2)
	var unpaid, reviews, past []tarry.Draft
	var paid []order
	for _, o := range madeOrders(8000) {
		moved := begin.Add((o.purchased.Sub(begin)%days + days) % days).Sub(o.purchased)
		purchased, due := o.purchased.Add(moved), o.purchased.Add(moved+payWithin)
		if purchased.After(now) {
			continue
		}
		isPaid := !o.approved.IsZero() && o.approved.Add(moved).Before(now) && o.approved.Sub(o.purchased) < payWithin
		draft := draftOf(t, "order.unpaid", o.id, tarry.At(due))
		switch {
		case isPaid:
			paid = append(paid, o)
			past = append(past, draftOf(t, "order.unpaid", o.id, tarry.In(time.Hour)))
		case due.After(now):
			unpaid = append(unpaid, draft)
		default:
			past = append(past, draft)
		}
		if isPaid {
			reviews = append(reviews, draftOf(t, "order.review", o.id, tarry.At(o.asked.Add(moved+48*time.Hour))))
		}
	}
	push(t, c, unpaid)
	push(t, c, past)
	for _, o := range paid {
		if err := c.Cancel(t.Context(), tarry.ByKey(o.id).Of("order.unpaid")); err != nil {
			t.Fatal(err)
		}
	}
	push(t, c, reviews)
	for _, queue := range []string{"order.unpaid", "order.review"} {
		for {
			got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{queue}, Max: 500})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Messages) == 0 {
				break
			}
			var acks []tarry.Settlement
			for _, m := range got.Messages {
				acks = append(acks, tarry.Settlement{Token: m.Token, Do: engine.Ack})
			}
			if _, err := c.Settle(t.Context(), acks); err != nil {
				t.Fatal(err)
			}
		}
	}
}
