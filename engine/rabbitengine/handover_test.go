package rabbitengine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// A process that dies at work has had its attempt, whatever kind of queue it is.
func TestAttemptsCountWhenAConnectionEnds(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		r := pushed(t, opened(t, url, cfg), engine.Message{Terms: engine.Terms{MaxAttempts: 3}})
		for attempt := range uint32(3) {
			e := opened(t, url, cfg)
			if l := leased(t, e, 1, time.Hour)[0]; l.ID != r.ID || l.Attempt != attempt+1 {
				t.Fatalf("attempt %d: %+v", attempt+1, l)
			}
			ok(t, e.Close())
		}
		e := opened(t, url, cfg)
		got, err := e.LeaseWait(t.Context(), engine.Wait{Queues: []string{"q"}, Max: 1, For: time.Minute})
		if ok(t, err); len(got.Messages) > 0 || len(got.Told) != 1 || got.Told[0].Died != 1 {
			t.Fatalf("after three attempts: %+v", got)
		}
		if dead := deadOf(t, e, 10); len(dead) != 1 || dead[0].ID != r.ID || dead[0].Attempt != 3 {
			t.Fatalf("dead are %+v", dead)
		}
	})
}

// What a process has taken in and nobody asks for goes to others, its attempt not counted.
func TestWhatNobodyAsksForGoesToOthers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		const n = 30
		a, b := opened(t, url, cfg), opened(t, url, cfg)
		for range n {
			pushed(t, a, engine.Message{})
		}
		kept := leased(t, a, n, time.Hour)[0] // the first that come
		held := 1
		a.mu.Lock()
		for _, l := range a.leases {
			if l.nonce != (a.leaseOf(kept.Token)).nonce {
				held++
			}
		}
		a.mu.Unlock()
		for got := 0; got < n-held; {
			for _, l := range leased(t, b, n, time.Hour) {
				if l.Attempt != 1 || l.LastError != "" {
					t.Fatalf("%+v", l)
				}
				settled(t, b, engine.Settlement{Token: l.Token, Do: engine.Ack})
				got++
			}
		}
		settled(t, a, engine.Settlement{Token: kept.Token, Do: engine.Ack})
	})
}

func TestMessagesOfOthersAreTaken(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		ok(t, now(t, e).ensure(t.Context(), brokerQueue{queue: "q"}))
		ch := bare(t, url)
		send(t, ch, "", "tarry.queue.q", amqp.Publishing{
			Body: []byte("hello"), ContentType: "text/plain", DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{"trace": "abc", "n": int32(7), "list": []any{1}, "tarry-attempt": "not a number", "x-death": []any{}},
		})
		l := leased(t, e, 1, time.Minute)[0]
		if string(l.Body) != "hello" || l.ContentType != "text/plain" || l.ID == 0 || l.Attempt != 1 || l.MaxAttempts != engine.DefaultMaxAttempts {
			t.Fatalf("%+v", l)
		}
		if len(l.Headers) != 3 || l.Headers[0] != (engine.Header{Name: "n", Value: "7"}) || l.Headers[2] != (engine.Header{Name: "trace", Value: "abc"}) {
			t.Fatalf("%+v", l.Headers)
		}
		settled(t, e, engine.Settlement{Token: l.Token, Do: engine.Retry, When: &engine.When{}, Reason: "again"})
		again := leased(t, e, 1, time.Minute)[0]
		if again.ID != l.ID || again.Attempt != 2 || string(again.Body) != "hello" || again.LastError != "again" {
			t.Fatalf("%+v", again)
		}
		settled(t, e, engine.Settlement{Token: again.Token, Do: engine.Ack})
	})
}

// A queue of the broker may be deleted while messages are on their way to it.
func TestParkedMessagesComeBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		due := pushed(t, e, engine.Message{Due: engine.When{In: 300 * time.Millisecond}})
		ch := bare(t, url)
		_, err := ch.QueueDelete("tarry.queue.q", false, false, false)
		ok(t, err)
		s, delay := now(t, e), 0x7d*cfg.Unit
		ok(t, s.ensureDelay(t.Context(), 0x7d))
		_, err = ch.QueueDelete(s.layout.name(brokerQueue{delay: digitDelay{1, 7}}), false, false, false) // of what is pushed next
		ok(t, err)
		later := pushed(t, e, engine.Message{Due: engine.When{In: delay}})
		servertest.Await(t, "both to be parked, or to have come back", func() error {
			if _, err := s.stock("tarry.queue.q"); err == nil {
				return nil
			}
			if n, err := s.stock("tarry.parking"); err != nil || n < 2 {
				return fmt.Errorf("%d are parked, %w", n, err)
			}
			return nil
		})
		other := opened(t, url, cfg)
		want := map[engine.ID]time.Time{due.ID: due.Due, later.ID: later.Due} // in any order
		for len(want) > 0 {
			l := leased(t, other, 1, time.Minute)[0]
			if at, ok := want[l.ID]; !ok || time.Now().Before(at) {
				t.Fatalf("%v came at %s, want one of %v", l.ID, time.Now(), want)
			}
			delete(want, l.ID)
			settled(t, other, engine.Settlement{Token: l.Token, Do: engine.Ack})
		}
	})
}

func TestTheDeadAreListedInPagesAndRedriven(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		var want []engine.ID
		for range 7 {
			want = append(want, pushed(t, e, engine.Message{Content: engine.Content{Body: []byte("b")}}).ID)
			l := leased(t, e, 1, time.Minute)[0]
			settled(t, e, engine.Settlement{Token: l.Token, Do: engine.Bury, Reason: strings.Repeat("why ", 3)})
		}
		for range 2 {
			dead := deadOf(t, e, 3)
			if len(dead) != len(want) {
				t.Fatalf("%d are dead, want %d", len(dead), len(want))
			}
			for i, m := range dead {
				if m.ID != want[i] || m.State != engine.Dead || m.Attempt != 1 || m.Died.IsZero() || m.LastError == "" || string(m.Body) != "b" {
					t.Fatalf("%d: %+v", i, m)
				}
			}
		}
		r, err := e.Redrive(t.Context(), "q", want[2:4], 0)
		if ok(t, err); r != (engine.Redriven{Redriven: 2}) {
			t.Fatalf("%+v", r)
		}
		for range 2 {
			l := leased(t, e, 1, time.Minute)[0]
			if l.Attempt != 1 || l.ID != want[2] && l.ID != want[3] {
				t.Fatalf("%+v", l)
			}
		}
		if dead := deadOf(t, e, 100); len(dead) != 5 {
			t.Fatalf("%d are left", len(dead))
		}
	})
}

// deadOf lists the dead by pages.
func deadOf(t *testing.T, e *Engine, limit int) (all []engine.Info) {
	t.Helper()
	for q := (engine.ListQuery{Queue: "q", State: engine.Dead, Limit: limit, Body: true}); ; {
		page, err := e.List(patience(t), q)
		ok(t, err)
		all = append(all, page.Messages...)
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
}
