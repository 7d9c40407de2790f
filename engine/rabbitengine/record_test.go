package rabbitengine

import (
	"math"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

func TestAMessageComesBackAsItWent(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	m := engine.Info{
		ID: 42, Queue: "q.1", State: engine.Ready, Due: at, Created: at.Add(-time.Hour), Died: at.Add(time.Hour), Attempt: 3, LastError: "no luck",
		Content: engine.Content{Body: []byte{0, 255}, ContentType: "a/b", Headers: []engine.Header{{Name: "B", Value: "2"}, {Name: "B", Value: ""}}},
		Policy:  engine.Policy{Priority: 1024, MaxAttempts: 5, TTR: time.Second, Backoff: []time.Duration{1, 2}},
	}
	p := publishing(&m)
	d := amqp.Delivery{Headers: p.Headers, ContentType: p.ContentType, MessageId: p.MessageId, Timestamp: p.Timestamp, Body: p.Body}
	if got := received(&d, "q.1", time.Now(), nil); !reflect.DeepEqual(*got, m) {
		t.Errorf("it comes back as\n%+v, it was\n%+v", *got, m)
	}
	d.Headers[headerDeliveries] = int64(2)
	if got := received(&d, "q.1", time.Now(), nil); got.Attempt != 5 {
		t.Errorf("delivered twice in vain: attempt %d", got.Attempt)
	}
	d.Headers[headerAttempt], d.Headers[headerDeliveries] = int64(math.MaxInt64), int64(1)
	if got := received(&d, "q.1", time.Now(), nil); got.Attempt != engine.MaxMaxAttempts {
		t.Errorf("attempts of another's making: %d", got.Attempt)
	}
}

// Anybody may write to a work queue.
func FuzzReceived(f *testing.F) {
	p := publishing(&engine.Info{ID: 1, Queue: "q", Policy: new(engine.Terms).Resolve(nil)})
	f.Add("1", "a/b", p.Headers[headerTerms].([]byte), int64(1), int64(2), int64(3), int64(4), true)
	f.Add("x", "", []byte{255}, int64(-1), int64(1)<<62, int64(-1)<<62, int64(1)<<40, false)
	f.Fuzz(func(t *testing.T, id, kind string, terms []byte, due, created, attempt, count int64, redelivered bool) {
		d := amqp.Delivery{
			MessageId: id, ContentType: kind, Redelivered: redelivered, Body: []byte("b"),
			Headers: amqp.Table{headerTerms: terms, headerDue: due, headerCreated: created, headerAttempt: attempt, headerDeliveries: count},
		}
		m := received(&d, "q", time.Now(), newIDs().next)
		if m.ID == 0 || m.Due.IsZero() || m.Due.Year() > engine.MaxYear || m.MaxAttempts < 1 || m.Attempt > engine.MaxMaxAttempts {
			t.Fatalf("%+v", m)
		}
		again := publishing(m)
		if err := again.Headers.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
