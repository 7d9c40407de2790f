package tarry

import "time"

// SetClock has the workers of a client read another clock.
func SetClock(c *Client, now func() time.Time) { c.now = now }

// SetWorkerClock has one worker read another clock.
func SetWorkerClock(w *Worker, now func() time.Time) { w.now = now }
