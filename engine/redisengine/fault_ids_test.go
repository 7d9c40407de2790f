package redisengine

import (
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestFaultOutageOfManyPushes: pushes that need ids at the same time do not wait for a hanging
// server one after another.
func TestFaultOutageOfManyPushes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	push(t, e, plain("q", ""))
	spent(e)
	s.Pause()
	t.Cleanup(s.Resume)
	const slack = 3 * time.Second // beside the outage
	ends(t, answerTimeout+slack, func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r, err := e.Push(t.Context(), []engine.Message{plain("q", "")})
				if err == nil {
					err = r[0].Err
				}
				fails(t, err, engine.ErrUnavailable)
			})
		}
		wg.Wait()
	})
}

// TestFaultDoubtedWhileRegistering: a registration that was sent before its server was doubted
// is repeated, even if the answer came after that.
func TestFaultDoubtedWhileRegistering(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openPatient(t, s.URL())
	q := e.queue("q")
	s.Pause()
	registered := make(chan error)
	go func() { registered <- e.register(t.Context(), []*queue{q}) }()
	time.Sleep(50 * time.Millisecond)
	e.registry.doubt()
	s.Resume()
	if err := <-registered; err != nil {
		t.Fatal(err)
	}
	if due, _ := e.registry.due(time.Now().Add(2*noteRetry), []*queue{q}); len(due) != 1 {
		t.Error("the queue counts as registered")
	}
}
