package rabbitengine

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// both runs a test on queues of both types, with an engine of a vhost that is empty.
func both(t *testing.T, test func(t *testing.T, url string, cfg Config)) {
	for _, queues := range []QueueType{Quorum, Classic} {
		t.Run(string(queues), func(t *testing.T) { test(t, rabbittest.Shared(t), Config{Queues: queues, Unit: 20 * time.Millisecond}) })
	}
}

// quorum runs a test on quorum queues, where the type makes no difference to the engine.
func quorum(t *testing.T, test func(t *testing.T, url string, cfg Config)) {
	test(t, rabbittest.Shared(t), Config{Queues: Quorum, Unit: 20 * time.Millisecond})
}

func opened(t testing.TB, url string, cfg Config) *Engine {
	t.Helper()
	e, err := New(url, &cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, e.Close()) })
	return e
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // for a broker on a busy machine
	t.Cleanup(cancel)
	return ctx
}

// pushed pushes a message for queue q, which must succeed.
func pushed(t testing.TB, e *Engine, m engine.Message) engine.PushResult {
	t.Helper()
	m.Queue = "q"
	r, err := e.Push(patience(t), []engine.Message{m})
	ok(t, err)
	ok(t, r[0].Err)
	return r[0]
}

// leased waits for up to n messages of queue q, at least one.
func leased(t testing.TB, e *Engine, n int, ttr time.Duration) []engine.Lease {
	t.Helper()
	ctx := patience(t)
	for {
		got, err := e.LeaseWait(ctx, engine.Wait{Queues: []string{"q"}, Max: n, For: time.Minute, TTR: ttr})
		ok(t, err)
		if len(got.Messages) > 0 {
			return got.Messages
		}
	}
}

func settled(t testing.TB, e *Engine, s engine.Settlement) engine.Settled {
	t.Helper()
	r, err := e.Settle(patience(t), []engine.Settlement{s})
	ok(t, err)
	ok(t, r[0].Err)
	return r[0]
}

// bare is a channel of a connection without tarry.
func bare(t testing.TB, url string) *amqp.Channel {
	t.Helper()
	c, err := amqp.Dial(url)
	ok(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the broker may have gone
	ch, err := c.Channel()
	ok(t, err)
	ok(t, ch.Confirm(false))
	return ch
}

// send publishes on a bare channel, and waits for the confirm.
func send(t testing.TB, ch *amqp.Channel, exchange, key string, p amqp.Publishing) {
	t.Helper()
	c, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, p)
	ok(t, err)
	if acked, err := c.WaitContext(patience(t)); err != nil || !acked {
		t.Fatalf("confirmed %v, %v", acked, err)
	}
}

// now is the session of an engine.
func now(t testing.TB, e *Engine) *session {
	t.Helper()
	s, err := e.current(patience(t), "test", "")
	ok(t, err)
	return s
}
