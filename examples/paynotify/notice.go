package main

import (
	"context"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// Notice is the body of the webhook, in the shape that the Standard Webhooks scheme
// recommends.
type Notice struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Order     `json:"data"`
}

// Order is the order that is paid.
type Order struct {
	ID string `json:"id"`
}

// schedule has the pauses after each failed call.
var schedule = []time.Duration{15 * time.Second, 30 * time.Second, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute}

// Paid is the queue of notices. The first call is due at once.
var Paid = tarry.NewTopic[Notice]("order.paid",
	tarry.MaxAttempts(1+uint32(len(schedule))),
	tarry.Remember(24*time.Hour),
	tarry.OnConflict(tarry.Keep), // one notice per order
)

// pushNotice pushes the notice of an order. known says that the merchant has confirmed it already.
func pushNotice(ctx context.Context, c *tarry.Client, order string, faster int) (known bool, err error) {
	waits := make([]time.Duration, len(schedule))
	for i, d := range schedule {
		waits[i] = d / time.Duration(faster)
	}
	notice := Notice{Type: Paid.Queue(), Timestamp: time.Now().UTC(), Data: Order{ID: order}}
	p, err := Paid.Push(ctx, c, notice, tarry.Key(order), tarry.Backoff(waits...))
	return p.State == tarry.Finished, err
}

// newWorker returns a worker that sends notices to the merchant. It sends the raw bytes, so
// it handles a topic of []byte.
func newWorker(c *tarry.Client, merchant forward.Target, observe func(tarry.Event)) *tarry.Worker {
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: observe})
	tarry.Handle(w, tarry.NewTopic[[]byte](Paid.Queue()), merchant.Send)
	return w
}
