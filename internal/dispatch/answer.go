package dispatch

import (
	"context"
	"maps"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Order is what one lease asks for.
type Order struct {
	Queues []string // a Standing has its own
	Max    int
	Room   map[string]int // how many of a queue at most, where that is less than Max
	Wait   time.Duration  // for the first message
	TTR    time.Duration
	Remote bool
	Spread bool // it would rather have something of each queue than all of one
}

// Answer is what a lease got.
type Answer struct {
	Messages []engine.Lease
	Now      time.Time // the engine's clock, not before any of the messages was leased
	Sent     time.Time // when the engine was asked for the first of the messages, by our clock
	Next     time.Time // when nothing came: when something may be there; zero: unknown
	Told     []Told
}

// Told is what is told of a queue beside its messages.
type Told struct {
	Queue         string
	Expired, Died int
	Held          bool
}

// answer gathers what one lease gets. All of it is guarded by Dispatcher.mu.
type answer struct {
	Answer
	fills bool // it goes on after the first message
	left  int
	wide  int            // how many queues are asked for a message each beyond what is left
	bytes int            // of the bodies that came
	of    map[string]int // how many of a queue are left, where that may be less
	told  map[string]int // where a queue stands in Told
	err   error
	ended bool
	done  chan struct{} // closed when it has ended
}

func newAnswer(o *Order) *answer {
	return &answer{left: o.Max, of: maps.Clone(o.Room), done: make(chan struct{})}
}

// room tells how many messages of a queue to ask for when taken are on the way, and
// whether there are none to be asked for of any queue.
func (a *answer) room(queue string, taken int) (n int, full bool) {
	if a.ended || taken >= a.left+a.wide {
		return 0, true
	}
	return min(max(a.left-taken, 1), a.leftOf(queue)), false
}

// leftOf tells how many messages of a queue it still takes that a call has brought.
func (a *answer) leftOf(queue string) int {
	if n, less := a.of[queue]; less {
		return min(n, a.left)
	}
	return a.left
}

// widen has the next call ask more queues than there is room for, since the last ones
// brought nothing; what they bring beyond the room is released.
func (a *answer) widen() { a.wide = min(max(1, 2*a.wide), wantsMax) }

func (a *answer) add(leases []engine.Lease, now, sent time.Time) {
	a.left -= len(leases)
	a.Messages = append(a.Messages, leases...)
	if now.After(a.Now) { // calls beside each other may be answered in any order
		a.Now = now
	}
	if a.Sent.IsZero() || sent.Before(a.Sent) {
		a.Sent = sent
	}
	for i := range leases {
		l := &leases[i]
		if n, ok := a.of[l.Queue]; ok {
			a.of[l.Queue] = n - 1
		}
		a.bytes += len(l.Body)
	}
	if !a.fills || a.left <= 0 || a.bytes >= engine.AnswerBytes {
		a.end()
	}
}

func (a *answer) fail(err error) {
	if a.err == nil && len(a.Messages) == 0 {
		a.err = err
	}
	a.end()
}

func (a *answer) end() {
	if !a.ended {
		a.ended = true
		close(a.done)
	}
}

// tell is what is told of a queue.
func (a *answer) tell(queue string) *Told {
	i, known := a.told[queue]
	if !known {
		if a.told == nil {
			a.told = make(map[string]int)
		}
		i = len(a.Told)
		a.told[queue], a.Told = i, append(a.Told, Told{Queue: queue})
	}
	return &a.Told[i]
}

func (a *answer) noted(queue string, expired, died int) {
	t := a.tell(queue)
	t.Expired += expired
	t.Died += died
}

// result is called when nothing more can come, without a lock. When ctx has ended, what
// came is given back.
func (d *Dispatcher) result(ctx context.Context, a *answer, o Outlook) (Answer, error) {
	if err := ctx.Err(); err != nil {
		d.GiveBack(a.Messages)
		return Answer{}, &engine.Error{Op: "lease", Err: err}
	}
	if len(a.Messages) > 0 {
		return a.Answer, nil
	}
	if a.err == nil {
		a.err = o.Err
	}
	a.Now, a.Next = o.Now, o.Next
	return a.Answer, a.err
}

// company is how long a lease that has messages waits for others that are being leased
// for it.
const company = 100 * time.Millisecond

// Lease leases once, and waits for the first message as long as asked. The engine is
// asked at least once. When ctx ends, what was leased meanwhile is given back.
func (d *Dispatcher) Lease(ctx context.Context, o Order) (Answer, error) {
	a := newAnswer(&o)
	s := &Subscription{
		Queues: o.Queues, TTR: o.TTR, Remote: o.Remote, Spread: o.Spread,
		answer: a, ends: ctx.Done(), asked: make(chan struct{}),
	}
	var over <-chan time.Time
	if o.Wait > 0 {
		s.until = time.Now().Add(o.Wait)
		timer := time.NewTimer(o.Wait)
		defer timer.Stop()
		over = timer.C
	}
	leave := d.Subscribe(s)
	if o.Wait > 0 {
		select {
		case <-a.done:
		case <-over:
		case <-ctx.Done():
		}
	}
	select {
	case <-a.done:
		// What else is on its way comes along if it comes soon.
		return d.result(ctx, a, leave(ctx, company))
	case <-s.asked:
	case <-ctx.Done():
	}
	return d.result(ctx, a, leave(ctx, 0))
}
