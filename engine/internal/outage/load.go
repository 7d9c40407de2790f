package outage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
)

// tolerance is how much before a due time a handler may seem to run: this process and the
// server read the same clock at different moments.
const tolerance = 5 * time.Millisecond

// insistence is the default of Ledger.Insistence.
const insistence = 2 * time.Minute

// insist repeats a call until it is answered.
func (l *Ledger) insist(what string, call func(context.Context) error) (answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(l.Insistence, insistence))
	defer cancel()
	for {
		err := call(ctx)
		if err == nil {
			return true
		}
		l.Change(func() { l.Failed, l.When = err, time.Now() })
		if l.Failing != nil {
			l.Failing(err)
		}
		if ctx.Err() != nil {
			l.t.Errorf("%s is never answered: %v", what, err)
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// Push repeats a push until it is answered.
func (l *Ledger) Push(c *tarry.Client, key string, in time.Duration) {
	l.Change(func() { l.Entries[key] = &Entry{In: in, Due: time.Now().Add(in)} })
	push := func(ctx context.Context) error {
		if l.Keyless {
			_, err := tarry.NewTopic[string](l.queue).Push(ctx, c, key, tarry.In(in))
			return err
		}
		_, err := c.Push(ctx, l.queue, nil, tarry.Key(key), tarry.In(in), tarry.OnConflict(tarry.Keep))
		return err
	}
	if l.insist("the push of "+key, func(ctx context.Context) error {
		err := push(ctx)
		if err != nil {
			l.Change(func() { l.Entries[key].Open = true })
		}
		return err
	}) {
		l.Change(func() { l.Entries[key].Pushed = true; l.Pushed++ })
	}
}

// Cancel repeats a cancel until it is answered. The message is then gone, unless a handler
// has it.
func (l *Ledger) Cancel(c *tarry.Client, key string) {
	gone := false
	if l.insist("the cancel of "+key, func(ctx context.Context) error {
		err := c.Cancel(ctx, tarry.ByKey(key).Of(l.queue))
		switch {
		case errors.Is(err, tarry.ErrLeased):
			return nil
		case err == nil, errors.Is(err, tarry.ErrNotFound):
			gone = true
			return nil
		}
		return err
	}) && gone {
		l.Change(func() { l.Entries[key].Gone = true; l.Gone++ })
	}
}

// Produce starts four producers that push messages with these delays in turn, until stop is
// called or the test ends.
func (l *Ledger) Produce(c *tarry.Client, spans ...time.Duration) (stop func()) {
	return l.produce(func(key string, n int) { l.Push(c, key, spans[n%len(spans)]) })
}

// cancelledIn is the delay of the messages that ProduceAndCancel cancels.
const cancelledIn = 100 * time.Millisecond

// ProduceAndCancel is Produce, and also pushes messages that it cancels at once.
func (l *Ledger) ProduceAndCancel(c *tarry.Client, spans ...time.Duration) (stop func()) {
	return l.produce(func(key string, n int) {
		l.Push(c, key, spans[n%len(spans)])
		if n%4 == 0 {
			key = "cancelled " + key
			l.Push(c, key, cancelledIn)
			l.Cancel(c, key)
		}
	})
}

func (l *Ledger) produce(one func(key string, n int)) (stop func()) {
	done := make(chan bool)
	var all sync.WaitGroup
	l.mu.Lock()
	first := len(l.Entries)
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
					one(fmt.Sprintf("%d.%d.%d", first, p, n), n)
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

// Work starts a worker for the queue and for more queues. It runs until the test ends.
func (l *Ledger) Work(c *tarry.Client, cfg tarry.WorkerConfig, more ...string) {
	cfg.Observer = func(e tarry.Event) {
		if e.Kind == tarry.Acked {
			l.acked(e.Key)
		}
	}
	w := tarry.NewWorker(c, &cfg)
	for _, queue := range append(more, l.queue) {
		tarry.Handle(w, tarry.NewTopic[string](queue), l.handle)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		// While the store does not answer, short leases end before they can be settled.
		if err := <-ended; err != nil && (cfg.LeaseTTR == 0 || !errors.Is(err, tarry.ErrUnavailable)) {
			l.t.Error(err)
		}
	})
}

func (l *Ledger) acked(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Repeating a push that was not answered yet may make another message.
	if e := l.Entries[key]; e != nil && e.Pushed {
		e.Gone = true
	}
}

func (l *Ledger) handle(_ context.Context, m *tarry.Message[string]) error {
	now, key := time.Now(), m.Key
	if l.Keyless {
		key = m.Body
	}
	l.mu.Lock()
	e := l.Entries[key]
	switch {
	case e == nil:
		l.t.Errorf("%q is handled, but was never pushed", key)
		e = &Entry{}
	case e.Due.Sub(now) > tolerance:
		l.t.Errorf("%s is handled %v before its due", key, e.Due.Sub(now))
	case e.Running && !l.Keyless:
		l.t.Errorf("%s is handled by two at once", key)
	case e.Gone && !e.Open && !l.Forgetful:
		l.t.Errorf("%s is handled after it was acked or cancelled", key)
	}
	e.Running = true
	l.Late = max(l.Late, now.Sub(e.Due))
	l.mu.Unlock()
	if l.During != nil {
		l.During()
	}
	l.Change(func() {
		e.Running = false
		e.Handled++
		l.Handled++
	})
	return nil
}
