package sqlengine

import (
	"sync"
	"time"
)

// present is what this process knows of the database's clock. Each answer with the time says
// between which two it was when the process began; what they agree on is known. It serves to
// guess: what is due the database decides.
type present struct {
	began time.Time // of the process: what is added to it is not touched by setting clocks

	mu          sync.Mutex
	least, most time.Duration // the database's time was so long after began then
	asked       time.Duration // after began, when the database told its time last; 0: never
	trip        time.Duration // the least that an answer has taken
}

// seen takes note of the database's time in the answer to what was sent at an instant.
func (p *present) seen(database, sent time.Time) {
	told := database.Sub(p.began)
	came := time.Since(p.began)
	least, most := told-came, told-sent.Sub(p.began)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked != 0 && least <= p.most && most >= p.least { // else a clock has been set
		least, most = max(least, p.least), min(most, p.most)
	}
	if trip := came - sent.Sub(p.began); p.asked == 0 || trip < p.trip {
		p.trip = trip
	}
	p.least, p.most, p.asked = least, most, max(came, 1)
}

// besides is how long an answer has taken besides the way there and back.
func (p *present) besides(took time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, took-p.trip)
}

// trusted is for how long what is known of a clock is taken for granted, if it is known that
// well.
const (
	trusted   = 10 * time.Second
	knownWell = 50 * time.Millisecond
)

// latest returns the latest that the engine's clock may be at, as far as is known, and whether
// the database has told its time lately, and that is known well.
func (e *Engine) latest() (at time.Time, fresh bool) {
	p := &e.present
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.began)
	at = e.clock(p.began.Add(now + p.most).UTC())
	return at, p.asked != 0 && now-p.asked < trusted && p.most-p.least <= knownWell
}
