package engine

import (
	"math/rand/v2"
	"time"
)

// The default backoff: 1 s after the first failed attempt, doubling up to an hour. A jitter
// of ±10 % keeps messages that failed together from returning together.
const (
	BackoffBase = time.Second
	BackoffMax  = time.Hour
)

// RetryDelay returns the delay after a failed attempt, counted from 1. It follows the
// message's own schedule exactly, and repeats its last entry. A message without a schedule
// gets the default backoff with jitter.
func (p *Policy) RetryDelay(attempt uint32) time.Duration {
	attempt = max(attempt, 1)
	if n := uint32(len(p.Backoff)); n > 0 {
		return p.Backoff[min(attempt, n)-1]
	}
	d := BackoffMax
	if attempt <= 12 { // 2^11 s < 1 h < 2^12 s
		d = min(BackoffMax, BackoffBase<<(attempt-1))
	}
	return d - d/10 + rand.N(d/5)
}
