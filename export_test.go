package tarry

import "time"

// SetClock has the workers of a client read another clock.
func SetClock(c *Client, now func() time.Time) { c.now = now }

// SetWorkerClock has one worker read another clock.
func SetWorkerClock(w *Worker, now func() time.Time) { w.now = now }

// WorkerHolds is what a worker counts, and what it keeps; all is zero when it has
// drained.
type WorkerHolds struct {
	Running, Queued, Unsaid, Idle int
	Kept, Turn, Rousing           bool
	Handlings                     int // running, queued or in line
}

// Holds returns what a worker holds.
func Holds(w *Worker) WorkerHolds {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := WorkerHolds{
		Running: w.running, Queued: w.queued, Unsaid: w.unconfirmed, Idle: len(w.idle),
		Kept: len(w.kept) > 0, Turn: w.turn.first != nil, Rousing: w.waking,
	}
	for _, q := range w.queues {
		h.Handlings += q.running + q.queued
		for d := q.line.first; d != nil; d = d.next {
			h.Handlings++
		}
	}
	return h
}

// Looks is how many deliveries the keeper of a worker has looked at.
func Looks(w *Worker) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks
}
