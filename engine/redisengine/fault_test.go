package redisengine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// tolerance is how much earlier than its due a handler may believe to be: this process
// and the server read the same clock at different moments.
const tolerance = 5 * time.Millisecond

// ledger keeps what was promised and what was done, by key. It fails the test as soon
// as a message is handled before its due, or by two at once.
type ledger struct {
	t      *testing.T
	queue  string
	during func() // what handlers do; nil: nothing

	mu      sync.Mutex
	changed chan struct{} // closed with each change, and then made anew
	entries map[string]*entry
	pushed  int           // pushes that were answered
	handled int           // handlers that have ended
	late    time.Duration // how late the latest of them began
	failed  error         // the last push that did not succeed
	when    time.Time     // that was
}

type entry struct {
	in      time.Duration
	due     time.Time // at the earliest: counted from before the push
	pushed  bool      // it was answered
	running bool
	handled int
}

func newLedger(t *testing.T, queue string) *ledger {
	return &ledger{t: t, queue: queue, changed: make(chan struct{}), entries: make(map[string]*entry)}
}

// change changes the ledger and tells those that wait.
func (l *ledger) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until enough holds, which is called under the lock, and returns how long
// that took.
func (l *ledger) await(what string, within time.Duration, enough func() bool) time.Duration {
	l.t.Helper()
	began := time.Now()
	giveUp := time.After(within)
	for {
		l.mu.Lock()
		ok, changed := enough(), l.changed
		l.mu.Unlock()
		if ok {
			return time.Since(began)
		}
		select {
		case <-changed:
		case <-giveUp:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.t.Fatalf("waited %v in vain for %s: %d pushed, %d handled, the last error: %v; left: %s",
				within, what, l.pushed, l.handled, l.failed, l.left())
		}
	}
}

// left names some of what was pushed and is not handled. Called under the lock.
func (l *ledger) left() string {
	var names []string
	for key, e := range l.entries {
		if e.pushed && e.handled == 0 && e.in < time.Minute {
			names = append(names, key)
		}
	}
	n := len(names)
	return fmt.Sprintf("%d, such as %v", n, names[:min(n, 5)])
}

// failure is the last push that did not succeed.
func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// more waits until n more were pushed and n more handled.
func (l *ledger) more(n int, within time.Duration) time.Duration {
	l.t.Helper()
	l.mu.Lock()
	pushed, handled := l.pushed+n, l.handled+n
	l.mu.Unlock()
	return l.await(fmt.Sprintf("%d more", n), within, func() bool { return l.pushed >= pushed && l.handled >= handled })
}

// rest waits until all is handled that was pushed and due soon.
func (l *ledger) rest(within time.Duration) time.Duration {
	l.t.Helper()
	return l.await("the rest", within, func() bool {
		for _, e := range l.entries {
			if e.pushed && e.handled == 0 && e.in < time.Minute {
				return false
			}
		}
		return true
	})
}

// push pushes a message until that is answered.
func (l *ledger) push(c *tarry.Client, key string, in time.Duration) {
	l.change(func() { l.entries[key] = &entry{in: in, due: time.Now().Add(in)} })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		_, err := c.Push(ctx, l.queue, nil, tarry.Key(key), tarry.In(in), tarry.OnConflict(tarry.Keep))
		l.change(func() {
			if err == nil {
				l.entries[key].pushed = true
				l.pushed++
			} else {
				l.failed, l.when = err, time.Now()
			}
		})
		switch {
		case err == nil:
			return
		case ctx.Err() != nil:
			l.t.Errorf("the push of %s is never answered", key)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// produce has four producers push messages with these spans in turn, until stop is
// called or the test ends.
func (l *ledger) produce(c *tarry.Client, spans ...time.Duration) (stop func()) {
	done := make(chan bool)
	var all sync.WaitGroup
	l.mu.Lock()
	first := len(l.entries)
	l.mu.Unlock()
	for p := range 4 {
		all.Go(func() {
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-pace.C:
					l.push(c, fmt.Sprintf("%d.%d.%d", first, p, n), spans[n%len(spans)])
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
	l.t.Cleanup(stop)
	return stop
}

// work has a worker handle the messages, also those of more queues, until the test
// ends.
func (l *ledger) work(c *tarry.Client, cfg tarry.WorkerConfig, more ...string) {
	w := tarry.NewWorker(c, &cfg)
	for _, queue := range append(more, l.queue) {
		tarry.Handle(w, tarry.NewTopic[string](queue), l.handle)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		// While nobody answers, short leases end before their results can be told.
		if err := <-ended; err != nil && (cfg.LeaseTTR == 0 || !errors.Is(err, tarry.ErrUnavailable)) {
			l.t.Error(err)
		}
	})
}

func (l *ledger) handle(_ context.Context, m *tarry.Message[string]) error {
	now := time.Now()
	l.mu.Lock()
	e := l.entries[m.Key]
	switch {
	case e == nil:
		l.t.Errorf("%q is handled, which nobody has pushed", m.Key)
		e = &entry{}
	case e.due.Sub(now) > tolerance:
		l.t.Errorf("%s is handled %v before its due", m.Key, e.due.Sub(now))
	case e.running:
		l.t.Errorf("%s is handled by two at once", m.Key)
	}
	e.running = true
	l.late = max(l.late, now.Sub(e.due))
	l.mu.Unlock()
	if l.during != nil {
		l.during()
	}
	l.change(func() {
		e.running = false
		e.handled++
		l.handled++
	})
	return nil
}

// once fails the test where a message was handled more often.
func (l *ledger) once() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.entries {
		if e.handled > 1 {
			l.t.Errorf("%s was handled %d times", key, e.handled)
		}
	}
}

// settled waits until all that was due soon is acked, and fails the test unless all that
// is due in the far future is still there.
func (l *ledger) settled(c *tarry.Client, within time.Duration) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var far []string
	for key, e := range l.entries {
		if e.in >= time.Minute {
			far = append(far, key)
		}
	}
	if len(far) == 0 {
		l.t.Error("nothing is due in the far future")
	}
	counts(l.t, c, l.queue, within, int64(len(far)), 0, 0)
	for _, key := range far {
		if i, err := c.Get(l.t.Context(), tarry.ByKey(key).Of(l.queue)); err != nil || i.State != tarry.Scheduled || l.entries[key].handled > 0 {
			l.t.Errorf("%s is %v, %v, and was handled %d times", key, i.State, err, l.entries[key].handled)
		}
	}
}

// openClient opens a client, which is closed with the test.
func openClient(t *testing.T, rawURL string, more ...string) *tarry.Client {
	t.Helper()
	c := tarry.New(openStore(t, rawURL, more...), nil)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// succeeds asks again and again, where there is nothing to wait for, until nothing
// is wrong any more, and returns how long that took.
func succeeds(t *testing.T, within time.Duration, ask func() error) time.Duration {
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

// counts waits until a queue holds so many messages that are scheduled, ready and
// leased, and no dead ones.
func counts(t *testing.T, c *tarry.Client, queue string, within time.Duration, scheduled, ready, leased int64) time.Duration {
	t.Helper()
	return succeeds(t, within, func() error {
		i, err := c.Queue(t.Context(), queue)
		if err == nil && (i.Scheduled != scheduled || i.Ready != ready || i.Leased != leased || i.Dead != 0) {
			err = fmt.Errorf("%s holds %d scheduled, %d ready, %d leased and %d dead, not %d, %d, %d and 0",
				queue, i.Scheduled, i.Ready, i.Leased, i.Dead, scheduled, ready, leased)
		}
		return err
	})
}

// fact is one number of a server's INFO.
func fact(t *testing.T, s *redistest.Server, section, name string) int {
	t.Helper()
	m := s.Do("INFO", section)
	text, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("INFO %s does not tell %s", section, name)
	return 0
}

// catchUp waits until replicas have all that their master has now.
func catchUp(t *testing.T, master *redistest.Server, replicas ...*redistest.Server) {
	t.Helper()
	at := fact(t, master, "replication", "master_repl_offset")
	for _, r := range replicas {
		succeeds(t, 10*time.Second, func() error {
			if is := fact(t, r, "replication", "slave_repl_offset"); is < at {
				return fmt.Errorf("%s is at %d, its master at %d", r.Addr(), is, at)
			}
			return nil
		})
	}
}
