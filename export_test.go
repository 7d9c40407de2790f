package tarry

import (
	"time"

	"github.com/tarryhq/tarry/internal/work"
)

// SetClock has the workers of a client read another clock.
func SetClock(c *Client, now func() time.Time) { c.now = now }

// SetWorkerClock has one worker read another clock.
func SetWorkerClock(w *Worker, now func() time.Time) { w.work.SetClock(now) }

// Holds returns what a worker holds.
func Holds(w *Worker) work.Holds { return w.work.Holds() }
