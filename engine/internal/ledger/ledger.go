package ledger

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Ledger keeps what was promised of the messages of a queue and what was done with them,
// by key. It fails the test as soon as one is handled that should not be.
type Ledger struct {
	// During is what handlers do; nil: nothing.
	During func()

	// Failing is told of each call that does not succeed; nil: nobody.
	Failing func(error)

	// Forgetful says that the store may lose what it answered last, so that what was acked
	// or cancelled may come back.
	Forgetful bool

	// Keyless says that the store knows no keys: messages have theirs as bodies, and may be
	// handled more than once, since the repetition of a push is another message.
	Keyless bool

	// Insistence is for how long a call is repeated until it is answered; 0: two minutes.
	Insistence time.Duration

	t     testing.TB
	queue string

	mu      sync.Mutex
	changed chan struct{} // closed with each change, and then made anew

	// What follows is for Change and Await.

	Entries map[string]*Entry
	Pushed  int           // pushes that were answered
	Gone    int           // cancels that were
	Handled int           // handlers that have ended
	Late    time.Duration // how late the latest of them began
	Failed  error         // the last call that did not succeed
	When    time.Time     // that was
}

// Entry is one message.
type Entry struct {
	In      time.Duration
	Due     time.Time // at the earliest: counted from before the push
	Pushed  bool      // it was answered
	Open    bool      // an attempt before was not, which may still take effect, also behind a cancel
	Gone    bool      // a cancel was answered, or an ack
	Handled int
	Running bool // a handler has it
}

// New returns a ledger for a queue.
func New(t testing.TB, queue string) *Ledger {
	return &Ledger{t: t, queue: queue, changed: make(chan struct{}), Entries: make(map[string]*Entry)}
}

// Change changes the ledger and tells those that wait.
func (l *Ledger) Change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Await waits until enough holds, which is called under the lock, and returns how long
// that took.
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

// wait waits until enough holds.
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

// awaited says whether a message is to be handled, and was not yet.
func (e *Entry) awaited() bool { return e.Pushed && !e.Gone && e.Handled == 0 && !e.far() }

// far says whether a message is due when the test is long over.
func (e *Entry) far() bool { return e.In >= time.Minute }

// left names some of what was pushed and is not handled. Called under the lock.
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

// Failure is the last error of a call that did not succeed; nil: all did.
func (l *Ledger) Failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Failed
}

// More waits until n more were pushed and n more handled.
func (l *Ledger) More(n int, within time.Duration) time.Duration {
	l.t.Helper()
	l.mu.Lock()
	pushed, handled := l.Pushed+n, l.Handled+n
	l.mu.Unlock()
	return l.Await(fmt.Sprintf("%d more", n), within, func() bool { return l.Pushed >= pushed && l.Handled >= handled })
}

// Rest waits until all is handled that was pushed and due soon.
func (l *Ledger) Rest(within time.Duration) time.Duration {
	l.t.Helper()
	return l.Await("the rest", within, l.rested)
}

// Rests reports whether all that was pushed and due soon is handled by then.
func (l *Ledger) Rests(within time.Duration) bool {
	_, ok := l.wait(within, l.rested)
	return ok
}

// rested says that nothing is awaited any more. Called under the lock.
func (l *Ledger) rested() bool {
	for _, e := range l.Entries {
		if e.awaited() {
			return false
		}
	}
	return true
}

// Once fails the test where a message was handled more often.
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

// Settled waits until all that was due soon is acked, and fails the test unless all that
// is due in the far future is still there.
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

// Succeeds asks again and again, where there is nothing to wait for, until nothing is
// wrong any more, and returns how long that took.
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

// Counts waits until a queue holds so many messages that are scheduled, ready and leased,
// and no dead ones, and returns how long that took.
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
