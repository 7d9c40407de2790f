// Package attempt knows what may be done about a call over a network that did not end
// well: whether it was carried out, whether it may be repeated, for how long, and with
// which pauses.
//
// A call that was certainly not carried out is repeated within its Bound, with growing
// Pauses. One whose answer was lost is repeated only where that cannot make it act
// twice; else the caller is told so, with engine.HintUnknown. What an answer means is the
// business of each engine.
package attempt

import (
	"context"
	"errors"
	"net"
	"time"
)

// Fate is what became of a call.
type Fate uint8

// The fates of a call.
const (
	Answered Fate = iota + 1 // the other side has answered for good, if only with an error
	NotRun                   // it was certainly not carried out
	Unknown                  // nobody knows whether it was
)

// FateOf tells the fate of a call that ended with an error of its connection or context,
// not with an answer.
func FateOf(err error) Fate {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return NotRun
	}
	return Unknown
}

// Bound is how long a call may take, however many attempts that is.
type Bound struct {
	Tries  time.Time // what was certainly not carried out is tried again until then; zero: never
	Answer time.Time // answers are waited for until then
}

// Within is a Bound from now on.
func Within(tries, answer time.Duration) Bound {
	now := time.Now()
	return Bound{now.Add(tries), now.Add(answer)}
}

// Once is a Bound for one try from now on.
func Once(answer time.Duration) Bound { return Bound{Answer: time.Now().Add(answer)} }

// Over says that nothing is tried again.
func (b Bound) Over() bool { return !time.Now().Before(b.Tries) }

// Pause is the time between attempts: Least at first, then twice as long each time, up to
// Most.
type Pause struct {
	Least, Most time.Duration
	next        time.Duration
}

// Wait waits for as long as it is time for, and reports whether ctx lasts.
func (p *Pause) Wait(ctx context.Context) bool {
	p.next = max(p.next, p.Least)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	p.next = min(2*p.next, p.Most)
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Reset makes the next pause the least again.
func (p *Pause) Reset() { p.next = 0 }
