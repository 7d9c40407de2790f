package calls

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// Fate says whether a call over a network was carried out.
//
// A call that was certainly not carried out is repeated within its Bound, with growing
// Pauses. If the answer was lost, the call is repeated only if it cannot take effect twice;
// otherwise the caller gets an error with engine.HintUnknown. Each engine interprets its
// answers itself.
type Fate uint8

// The fates of a call.
const (
	Answered Fate = iota + 1 // the other side has given its final answer, perhaps an error
	NotRun                   // certainly not carried out
	Unknown                  // perhaps carried out
)

// FateOf returns the fate of a call that ended with an error of its connection or context,
// without an answer.
func FateOf(err error) Fate {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return NotRun
	}
	return Unknown
}

// Bound is how long a call may take, over all its attempts.
type Bound struct {
	Tries  time.Time // when to stop repeating calls that were certainly not carried out; zero: never repeat
	Answer time.Time // when to stop waiting for answers
}

// Within returns a Bound that starts now.
func Within(tries, answer time.Duration) Bound {
	now := time.Now()
	return Bound{now.Add(tries), now.Add(answer)}
}

// Once returns a Bound for one attempt that starts now.
func Once(answer time.Duration) Bound { return Bound{Answer: time.Now().Add(answer)} }

// Over reports whether the time for attempts has passed.
func (b Bound) Over() bool { return !time.Now().Before(b.Tries) }

// Pause is the time between attempts. It begins at Least and doubles up to Most.
type Pause struct {
	Least, Most time.Duration
	next        time.Duration
}

// Next returns the next pause.
func (p *Pause) Next() time.Duration {
	now := max(p.next, p.Least)
	p.next = min(2*now, p.Most)
	return now
}

// Wait waits for the next pause. It returns false if ctx ends.
func (p *Pause) Wait(ctx context.Context) bool { return duration.Sleep(ctx, p.Next()) }

// Reset makes the next pause Least again.
func (p *Pause) Reset() { p.next = 0 }
