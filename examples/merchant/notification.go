package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tarryhq/tarry"
)

// Payment is what the merchant is told.
type Payment struct {
	ID  string `json:"id"`
	URL string `json:"url"`
}

// maxCalls is how often a merchant is called before a person has to look.
const maxCalls = 10

// Paid is the queue of notifications: the first call is due at once.
var Paid = tarry.NewTopic[Payment]("merchant.paid",
	tarry.Backoff(15*time.Second, 30*time.Second, 3*time.Minute), // the last repeats
	tarry.MaxAttempts(maxCalls),
	tarry.OnConflict(tarry.Keep), // told twice of one payment, we notify once
)

// tell has the merchant told. It returns when the notification is kept.
func tell(ctx context.Context, c *tarry.Client, p Payment) error {
	_, err := Paid.Push(ctx, c, p, tarry.Key(p.ID))
	return err
}

// newWorker returns a worker that calls merchants. An error of call makes the
// message come back after its backoff.
func newWorker(c *tarry.Client, call func(context.Context, Payment) error, observe func(tarry.Event)) *tarry.Worker {
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: observe})
	tarry.Handle(w, Paid, func(ctx context.Context, m *tarry.Message[Payment]) error {
		return call(ctx, m.Body)
	})
	return w
}

// post calls the merchant's URL. Any 2xx is an answer.
func post(client *http.Client) func(context.Context, Payment) error {
	return func(ctx context.Context, p Payment) error {
		body, err := json.Marshal(p)
		if err != nil {
			return tarry.Bury(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
		if err != nil {
			return tarry.Bury(err) // no such URL: calling again cannot help
		}
		req.Header.Set("Content-Type", "application/json")
		// At least once: the merchant tells repeated calls by this.
		req.Header.Set("Idempotency-Key", p.ID)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("the merchant answered %s", res.Status)
		}
		return nil
	}
}
