package rabbitengine

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

// The clock of a process that pushes may be ahead: what it pushed to be due at once is, is leased
// for as long as any other, and does not wait when it goes round. What it pushed with a delay waits
// for no longer than that.
func TestMessagesOfAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 1500 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			ahead(t, delay)
		})
	}
}

func ahead(t *testing.T, delay time.Duration) {
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		ok(t, now(t, e).ensure(t.Context(), brokerQueue{queue: "q"}))
		m, err := e.message(&engine.Message{Queue: "q"})
		ok(t, err)
		m.Due, m.Created = m.Due.Add(time.Hour+delay), m.Created.Add(time.Hour)
		p := publishing(m)
		p.DeliveryMode = amqp.Persistent
		send(t, bare(t, url), "", "tarry.queue.q", p)
		for range 2 {
			w, err := e.LeaseWait(patience(t), engine.Wait{Queues: []string{"q"}, Max: 1, For: time.Minute, TTR: time.Minute})
			ok(t, err)
			if len(w.Messages) == 0 {
				t.Fatal("it waits")
			}
			l := w.Messages[0]
			if lasts := l.Deadline.Sub(w.Now); lasts < 50*time.Second || l.Due.After(w.Now) {
				t.Fatalf("the lease lasts for %s, from %s; due %s", lasts, w.Now, l.Due)
			}
			settled(t, e, engine.Settlement{Token: l.Token, Do: engine.Release})
		}
	})
}
