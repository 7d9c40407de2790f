package amqp

import (
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		child(text)
		return
	}
	lookEvery = 200 * time.Millisecond
	leaktest.Main(rabbittest.Main(m))
}

// patience bounds every wait.
const patience = 2 * time.Minute

// connected is a channel of the bare client, for the test's own use.
func connected(t testing.TB, at string) *rabbit.Channel {
	t.Helper()
	conn, err := rabbit.Dial(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // or the broker has
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

// declare makes a durable queue, bound to an exchange by a key.
func declare(t testing.TB, ch *rabbit.Channel, queue, exchange, kind, key string) {
	t.Helper()
	_, err := ch.QueueDeclare(queue, true, false, false, false, nil)
	if err == nil && exchange != "" {
		if err = ch.ExchangeDeclare(exchange, kind, true, false, false, false, nil); err == nil {
			err = ch.QueueBind(queue, key, exchange, false, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func declareQuorum(t testing.TB, ch *rabbit.Channel, queue string) {
	t.Helper()
	if _, err := ch.QueueDeclare(queue, true, false, false, false, rabbit.Table{rabbit.QueueTypeArg: "quorum"}); err != nil {
		t.Fatal(err)
	}
}

// publish publishes and waits for the confirm.
func publish(t testing.TB, ch *rabbit.Channel, exchange, key string, msg rabbit.Publishing) {
	t.Helper()
	msg.DeliveryMode = rabbit.Persistent
	c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, true, false, msg)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := c.WaitContext(t.Context()); err != nil || !ok {
		t.Fatalf("confirmed %v, %v", ok, err)
	}
}

// take waits for a message of a queue.
func take(t testing.TB, ch *rabbit.Channel, queue string) rabbit.Delivery {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return d
		}
	}
	t.Fatalf("no message comes to %s", queue)
	return rabbit.Delivery{}
}

// works is a store with intakes and their implied routes.
type works struct {
	*targettest.Intakes
	t   testing.TB
	c   *tarry.Client
	end func() // also closes the store
}

var quiet = slog.New(slog.DiscardHandler)

// begin runs intakes on a store.
func begin(t testing.TB, store string, intakes ...intake.Intake) *works {
	t.Helper()
	return beginWith(t, store, tarry.Config{}, intakes...)
}

func beginWith(t testing.TB, store string, cfg tarry.Config, intakes ...intake.Intake) *works {
	t.Helper()
	cfg.Logger = quiet
	c, err := tarry.Open(t.Context(), store, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &works{targettest.Take(t, c, intakes...), t, c, nil}
	w.end = sync.OnceFunc(func() {
		w.End()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.end)
	return w
}

// fails waits until the first intake fails with a code and a text.
func (w *works) fails(code, text string) {
	w.t.Helper()
	if st := w.Fails(code); !strings.Contains(st.Error, text) {
		w.t.Errorf("it says %q, want %q", st.Error, text)
	}
}

// with adds options to a URL.
func with(t testing.TB, at string, options ...string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(options); i += 2 {
		q.Add(options[i], options[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// delayed is the intake of these tests: from the exchange delayed to the exchange work.
func delayed(t testing.TB, at string, options ...string) intake.Intake {
	return intake.Intake{Queue: "delayed",
		Source: with(t, at, append([]string{"queue", "tarry.delayed", "declare", "true", "exchange", "delayed"}, options...)...),
		Target: with(t, at, "exchange", "work")}
}
