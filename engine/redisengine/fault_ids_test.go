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
	e, client := delaying(t)
	q := e.queue("q")
	client.hold.Store(true)
	registered := make(chan error)
	go func() { registered <- e.register(t.Context(), []*queue{q}) }()
	<-client.asked
	e.registry.doubt()
	client.proceed <- struct{}{}
	if err := <-registered; err != nil {
		t.Fatal(err)
	}
	if due, _ := e.registry.due(time.Now().Add(2*noteRetry), []*queue{q}); len(due) != 1 {
		t.Error("the queue counts as registered")
	}
}

// TestFaultClosedBeforeRegistering: an engine is closed before it has registered a queue again.
// Others know the queue, and so what its tokens are of.
func TestFaultClosedBeforeRegistering(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e, other := openURL(t, s.URL()), openStore(t, s.URL())
	e.registerLater(nil, true) // the registry did not answer
	push(t, e, plain("q", "k"))
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if queues, _, err := other.Queues(t.Context(), "", 10); err != nil || len(queues) != 1 {
		t.Errorf("%+v, %v", queues, err)
	}
	if s := settle1(t, other, engine.Settlement{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}); s.Err != nil {
		t.Error(s.Err)
	}
}
