package rabbitengine

import (
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

func TestNothingIsEarlyNorLost(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		n := 400
		if cfg.Queues == Classic {
			n /= 4
		}
		type want struct {
			sent  time.Time
			delay time.Duration
		}
		all := make(map[engine.ID]want)
		for range n {
			w := want{time.Now(), time.Duration(rand.Int64N(int64(1500 * time.Millisecond)))}
			all[pushed(t, e, engine.Message{Due: engine.When{In: w.delay}}).ID] = w
		}
		for len(all) > 0 {
			for _, l := range leased(t, e, 50, time.Minute) {
				w, there := all[l.ID]
				if took := time.Since(w.sent); !there || took < w.delay {
					t.Fatalf("%v came after %s, pushed for %s", l.ID, took, w.delay)
				}
				delete(all, l.ID)
				settled(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack})
			}
		}
	})
}

// Only the head of a queue expires, so with a TTL for each message a short one waits behind
// a long one; by digits it does not.
func TestNothingWaitsBehindALongerDelay(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		ch := bare(t, url)
		_, err := ch.QueueDeclare("plain", true, false, false, false, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "came"})
		ok(t, err)
		_, err = ch.QueueDeclare("came", true, false, false, false, nil)
		ok(t, err)
		for _, ttl := range []string{"1500", "100"} {
			send(t, ch, "", "plain", amqp.Publishing{Expiration: ttl, Body: []byte(ttl), DeliveryMode: amqp.Persistent})
		}
		e := opened(t, url, cfg)
		pushed(t, e, engine.Message{Due: engine.When{In: time.Minute}, Content: engine.Content{Body: []byte("60000")}})
		pushed(t, e, engine.Message{Due: engine.When{In: 100 * time.Millisecond}, Content: engine.Content{Body: []byte("100")}})
		if first := leased(t, e, 1, 0)[0]; string(first.Body) != "100" {
			t.Errorf("first came %s", first.Body)
		}
		came, err := ch.Consume("came", "", true, false, false, false, nil)
		ok(t, err)
		if first := <-came; string(first.Body) != "1500" {
			t.Errorf("by TTLs of messages first came %s: then digits are not needed", first.Body)
		}
	})
}

func TestFixedDelays(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url string, cfg Config) {
		const long = 3 * time.Second
		cfg.Delays = []time.Duration{150 * time.Millisecond, long}
		e := opened(t, url, cfg)
		var began time.Time
		var late, soon engine.PushResult
		for {
			began = time.Now()
			late = pushed(t, e, engine.Message{Due: engine.When{In: long}})
			soon = pushed(t, e, engine.Message{Due: engine.When{In: 150 * time.Millisecond}, Terms: engine.Terms{Backoff: []time.Duration{200 * time.Millisecond}}})
			if time.Since(began) < long/2 {
				break
			}
			for range 2 { // a busy machine has pushed the other one too late to come first
				settled(t, e, engine.Settlement{Token: leased(t, e, 1, time.Minute)[0].Token, Do: engine.Ack})
			}
		}
		first := leased(t, e, 1, time.Minute)[0]
		if first.ID != soon.ID || time.Since(began) < 150*time.Millisecond {
			t.Fatalf("%v came first, after %s", first.ID, time.Since(began))
		}
		s := settled(t, e, engine.Settlement{Token: first.Token, Do: engine.Retry, Reason: "no luck"})
		if d := time.Until(s.Until); s.State != engine.Scheduled || d > long {
			t.Fatalf("%+v, in %s", s, d)
		}
		if next := leased(t, e, 1, time.Minute)[0]; next.ID != late.ID {
			t.Fatalf("%+v", next)
		}
		again := leased(t, e, 1, time.Minute)[0]
		if again.ID != soon.ID || again.Attempt != 2 || again.LastError != "no luck" || time.Now().Before(s.Until) {
			t.Fatalf("%+v", again)
		}
		r, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Due: engine.When{In: 2 * time.Second}}})
		if ok(t, err); engine.Code(r[0].Err) != "unsupported" {
			t.Errorf("another delay: %v", r[0].Err)
		}
	})
}
