package outage

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Ledger records, by key, the promises about the messages of a queue, and how they were
// handled. It fails the test as soon as a message is handled that should not be.
type Ledger struct {
	// During runs in each handler; nil: nothing.
	During func()

	// Failing is called with the error of each failed call; nil: it is not.
	Failing func(error)

	// Forgetful says that the store may lose its last answers, so that acked and cancelled
	// messages may come back.
	Forgetful bool

	// Keyless says that the store knows no keys. Keys are then sent as bodies, and a message
	// may be handled more than once, because a repeated push makes another message.
	Keyless bool

	// Insistence bounds how long a call is repeated until it is answered; 0: two minutes.
	Insistence time.Duration

	t     testing.TB
	queue string

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change

	// The fields below are for use in Change and Await.

	Entries map[string]*Entry
	Pushed  int           // answered pushes
	Gone    int           // answered cancels
	Handled int           // handlers that have ended
	Late    time.Duration // the longest time from a due time to the start of its handler
	Failed  error         // the last error of a call
	When    time.Time     // time of Failed
}

// Entry is one message.
type Entry struct {
	In      time.Duration
	Due     time.Time // at the earliest: counted from before the push
	Pushed  bool      // a push was answered
	Open    bool      // an earlier attempt got no answer: it may still take effect, even after a cancel
	Gone    bool      // an ack or a cancel was answered
	Handled int
	Running bool // a handler has it
}

// NewLedger returns a ledger for a queue.
func NewLedger(t testing.TB, queue string) *Ledger {
	return &Ledger{t: t, queue: queue, changed: make(chan struct{}), Entries: make(map[string]*Entry)}
}

// Change changes the ledger and wakes those that wait.
func (l *Ledger) Change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Await waits until enough returns true, and returns how long that took. It calls enough
// under the lock.
func (l *Ledger) Await(what string, within time.Duration, enough func() bool) time.Duration {
	l.t.Helper()
	took, ok := l.wait(within, enough)
	if !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.t.Fatalf("waited %v in vain for %s: %d pushed, %d handled, the last error: %v; left: %s",
			within, what, l.Pushed, l.Handled, l.Failed, l.left())
	}
	return took
}

// wait waits until enough returns true.
func (l *Ledger) wait(within time.Duration, enough func() bool) (took time.Duration, ok bool) {
	began := time.Now()
	giveUp := time.After(within)
	for {
		l.mu.Lock()
		ok, changed := enough(), l.changed
		l.mu.Unlock()
		if ok {
			return time.Since(began), true
		}
		select {
		case <-changed:
		case <-giveUp:
			return within, false
		}
	}
}

// awaited reports whether a message is still to be handled.
func (e *Entry) awaited() bool { return e.Pushed && !e.Gone && e.Handled == 0 && !e.far() }

// far reports whether a message is due long after the test.
func (e *Entry) far() bool { return e.In >= time.Minute }

// left names some of the messages still to be handled. The lock must be held.
func (l *Ledger) left() string {
	var names []string
	for key, e := range l.Entries {
		if e.awaited() {
			names = append(names, key)
		}
	}
	n := len(names)
	return fmt.Sprintf("%d, such as %v", n, names[:min(n, 5)])
}

// Failure returns the last error of a call; nil: all succeeded.
func (l *Ledger) Failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Failed
}

// More waits until n more messages were pushed and n more were handled.
func (l *Ledger) More(n int, within time.Duration) time.Duration {
	l.t.Helper()
	l.mu.Lock()
	pushed, handled := l.Pushed+n, l.Handled+n
	l.mu.Unlock()
	return l.Await(fmt.Sprintf("%d more", n), within, func() bool { return l.Pushed >= pushed && l.Handled >= handled })
}

// Rest waits until all pushed messages that are due soon are handled.
func (l *Ledger) Rest(within time.Duration) time.Duration {
	l.t.Helper()
	return l.Await("the rest", within, l.rested)
}

// Rests reports whether all pushed messages that are due soon are handled in time.
func (l *Ledger) Rests(within time.Duration) bool {
	_, ok := l.wait(within, l.rested)
	return ok
}

// rested reports whether no message is awaited any more. The lock must be held.
func (l *Ledger) rested() bool {
	for _, e := range l.Entries {
		if e.awaited() {
			return false
		}
	}
	return true
}

// Once fails the test if a message was handled more than once.
func (l *Ledger) Once() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.Entries {
		if e.Handled > 1 {
			l.t.Errorf("%s was handled %d times", key, e.Handled)
		}
	}
}

// Settled waits until all messages that were due soon are acked. It fails the test unless
// those due in the far future are still there.
func (l *Ledger) Settled(c *tarry.Client, within time.Duration) {
	l.t.Helper()
	var far []string
	l.mu.Lock()
	for key, e := range l.Entries {
		if e.far() && !e.Gone {
			far = append(far, key)
		}
	}
	l.mu.Unlock()
	if len(far) == 0 {
		l.t.Error("nothing is due in the far future")
	}
	Counts(l.t, c, l.queue, within, int64(len(far)), 0, 0) // without the lock: handlers that still run need it
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range far {
		if i, err := c.Get(l.t.Context(), tarry.ByKey(key).Of(l.queue)); err != nil || i.State != tarry.Scheduled || l.Entries[key].Handled > 0 {
			l.t.Errorf("%s is %v, %v, and was handled %d times", key, i.State, err, l.Entries[key].Handled)
		}
	}
}

// Succeeds calls ask at short intervals until it returns nil, and returns how long that took.
func Succeeds(t testing.TB, within time.Duration, ask func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := ask()
		switch waited := time.Since(began); {
		case err == nil:
			return waited
		case waited > within:
			t.Fatalf("after %v: %v", waited, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Counts waits until a queue holds these numbers of scheduled, ready and leased messages and
// no dead ones. It returns how long that took.
func Counts(t testing.TB, c *tarry.Client, queue string, within time.Duration, scheduled, ready, leased int64) time.Duration {
	t.Helper()
	return Succeeds(t, within, func() error {
		i, err := c.Queue(t.Context(), queue)
		if err == nil && (i.Scheduled != scheduled || i.Ready != ready || i.Leased != leased || i.Dead != 0) {
			err = fmt.Errorf("%s holds %d scheduled, %d ready, %d leased and %d dead, not %d, %d, %d and 0",
				queue, i.Scheduled, i.Ready, i.Leased, i.Dead, scheduled, ready, leased)
		}
		return err
	})
}
