package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/amqp"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) { leaktest.Main(rabbittest.Main(m)) }

var (
	message = targettest.Message
	send    = targettest.Send
	quiet   = &forward.Options{Logger: slog.New(slog.DiscardHandler)}
)

// channelTo is a channel of the bare client, for the test's own use.
func channelTo(t testing.TB, url string) *rabbit.Channel {
	t.Helper()
	conn, err := rabbit.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // or the broker has
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func declare(t testing.TB, ch *rabbit.Channel, queue string, args rabbit.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// take gets a message of a queue that has one.
func take(t testing.TB, ch *rabbit.Channel, queue string) rabbit.Delivery {
	t.Helper()
	d, ok, err := ch.Get(queue, true)
	if err != nil || !ok {
		t.Fatalf("%s has a message: %v, %v", queue, ok, err)
	}
	return d
}

// count is how many messages a queue has ready.
func count(t testing.TB, ch *rabbit.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q.Messages
}

func TestAMessageHasTheBodyTheIDAndTheMetadata(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	declare(t, ch, "due", nil)
	declare(t, ch, "other", nil)
	declare(t, ch, "orders", nil)
	for queue, key := range map[string]string{"due": "order.due", "other": "other", "orders": "orders"} {
		if err := ch.QueueBind(queue, key, "amq.topic", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	o := &forward.Options{Headers: []forward.Header{{Name: "Team", Value: "shop"}, {Name: "BCC", Value: "other"}}}
	target := targettest.Open(t, at+"?exchange=amq.topic&key=order.due", o)
	send(t, target, message(7, "\x00\xff binary",
		forward.Header{Name: "Trace", Value: "ä\r\n"}, forward.Header{Name: "Trace", Value: "b"},
		forward.Header{Name: "CC", Value: "orders"}, forward.Header{Name: strings.Repeat("x", 256), Value: "x"},
		forward.Header{Name: "content-type", Value: "feigned"}))
	d := take(t, ch, "due")
	if string(d.Body) != "\x00\xff binary" || d.MessageId != "7" || d.ContentType != "text/plain" || d.DeliveryMode != rabbit.Persistent || d.Timestamp.IsZero() {
		t.Errorf("got %q, id %q, %q, mode %d, %s", d.Body, d.MessageId, d.ContentType, d.DeliveryMode, d.Timestamp)
	}
	want := rabbit.Table{"Tarry-Id": "7", "Tarry-Queue": "orders", "Tarry-Key": "order-7", "Tarry-Due": "2026-05-04T03:02:01.020Z", "Tarry-Attempt": "2",
		"Trace": []any{"ä\r\n", "b"}, "Team": "shop"}
	if fmt.Sprint(d.Headers) != fmt.Sprint(want) { // maps are printed in order
		t.Errorf("got  %q\nwant %q", d.Headers, want)
	}
	if take(t, ch, "other").MessageId != "7" || count(t, ch, "orders") != 0 {
		t.Error("the copies are not those of the options")
	}
	send(t, targettest.Open(t, at, nil), message(8, ""))
	if d := take(t, ch, "orders"); d.MessageId != "8" {
		t.Errorf("by the queue's name came %s", d.MessageId)
	}
}

func TestManySends(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	declare(t, ch, "orders", nil)
	target := targettest.Open(t, at, nil)
	targettest.SendMany(t, target, 32, func(id uint64) *tarry.Message[[]byte] { return message(id, "x") })
	seen := make(map[string]bool)
	for range 640 {
		seen[take(t, ch, "orders").MessageId] = true
	}
	if n := count(t, ch, "orders"); n != 0 || len(seen) != 640 {
		t.Errorf("%d messages, and %d more", len(seen), n)
	}
}

func TestWhatNoQueueTakesIsRetried(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	target := targettest.Open(t, at, nil)
	// Side by side with one that is taken: each gets its own answer.
	declare(t, ch, "taken", nil)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			m := message(uint64(1+i), "x")
			if i%2 == 0 {
				targettest.Retried(t, target.Send(t.Context(), m), "NO_ROUTE", "no queue takes", "bind one")
				return
			}
			m.Queue = "taken"
			if err := target.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(t, ch, "taken"); n != 32 {
		t.Errorf("%d of 32", n)
	}
	declare(t, ch, "orders", nil)
	send(t, target, message(1, "x"))
}

func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	declare(t, ch, "orders", rabbit.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	target := targettest.Open(t, at, nil)
	send(t, target, message(1, "x"))
	targettest.Retried(t, target.Send(t.Context(), message(2, "x")), "nack", "full")
	take(t, ch, "orders")
	targettest.Recovers(t, target, message(2, "x"))
}

func TestAnExchangeThatIsNotThere(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	declare(t, ch, "orders", nil)
	target := targettest.Open(t, at+"?exchange=later", nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			targettest.Retried(t, target.Send(t.Context(), message(uint64(1+i), "x")), "no exchange 'later'", "make the exchange")
		})
	}
	all.Wait()
	if err := ch.ExchangeDeclare("later", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("orders", "", "later", false, nil); err != nil {
		t.Fatal(err)
	}
	send(t, target, message(1, "x"))
}

// The broker closes the channel, and with it fails what else is under way there.
func TestOneBadMessageHarmsNoOther(t *testing.T) {
	t.Parallel()
	_, cert, keyFile := nettest.Certificate(t)
	secure := strconv.Itoa(nettest.FreePort(t))
	s := rabbittest.Start(t, rabbittest.Settings("max_message_size = 10000", "frame_max = 8192",
		"listeners.ssl.1 = 127.0.0.1:"+secure, "ssl_options.cacertfile = "+cert, "ssl_options.certfile = "+cert, "ssl_options.keyfile = "+keyFile))
	ch := channelTo(t, s.URL())
	declare(t, ch, "orders", nil)
	target := targettest.Open(t, s.URL(), quiet)
	for _, size := range []int{20_000, 2 << 20} {
		large := strings.Repeat("x", size)
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				if i%8 == 0 {
					targettest.BuriedWith(t, target.Send(t.Context(), message(uint64(1+i), large)), "PRECONDITION_FAILED", "larger than", "never")
					return
				}
				if err := target.Send(t.Context(), message(uint64(1+i), "x")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		seen, came := make(map[string]bool), count(t, ch, "orders")
		for range came {
			seen[take(t, ch, "orders").MessageId] = true
		}
		if len(seen) != 56 || size > 1<<20 && came > 56 {
			t.Errorf("%d bytes: %d messages of 56, %d in all", size, len(seen), came)
		}
	}
	wide := forward.Header{Name: "Wide", Value: strings.Repeat("x", 8192)}
	targettest.BuriedWith(t, target.Send(t.Context(), message(1, "x", wide)), "headers have", "frame_max")

	t.Run("over TLS", func(t *testing.T) {
		send(t, targettest.Open(t, "amqps://127.0.0.1:"+secure+"?ca_file="+cert, nil), message(1, "x"))
		targettest.Retried(t, targettest.Open(t, "amqps://127.0.0.1:"+secure, nil).Send(t.Context(), message(1, "x")), "certificate")
	})
	t.Run("restarted", func(t *testing.T) {
		s.SyncQueues()
		s.Kill()
		targettest.Retried(t, target.Send(t.Context(), message(1, "x")), s.Addr(), "check that RabbitMQ runs")
		s.Restart()
		targettest.Recovers(t, target, message(1, "x"))
	})
	t.Run("blocked", func(t *testing.T) {
		short := targettest.Open(t, s.URL(), &forward.Options{Timeout: 500 * time.Millisecond, Logger: quiet.Logger})
		targettest.Recovers(t, short, message(1, "x"))
		other := targettest.Open(t, s.URL(), &forward.Options{Timeout: 500 * time.Millisecond, Logger: quiet.Logger})
		targettest.Recovers(t, other, message(1, "x"))
		s.Alarm(true)
		defer s.Alarm(false)
		targettest.Fails(t, short, message(2, "x"), "deadline")
		targettest.Fails(t, other, message(2, strings.Repeat("x", 2<<20)), "deadline")
		targettest.Fails(t, short, message(3, "x"), "blocks publishers", "low on memory", "give RabbitMQ")
		waiting := make(chan error, 1)
		go func() { waiting <- target.Send(t.Context(), message(4, "x")) }()
		s.Alarm(false)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		targettest.Recovers(t, short, message(3, "x"))
	})
}

func TestABrokerThatIsDownAtFirstAndConnectionsThatAreCut(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	declare(t, ch, "orders", nil)
	p := rabbittest.StartProxy(t, at)
	target := targettest.Open(t, p.URL(), quiet)
	p.Refuse(true)
	targettest.Retried(t, target.Send(t.Context(), message(1, "x")), p.Addr(), "check that RabbitMQ runs")
	p.Refuse(false)
	targettest.Recovers(t, target, message(1, "x"))
	for range 3 {
		p.Cut()
		targettest.Recovers(t, target, message(2, "x"))
	}
	// A confirm that does not come.
	short := targettest.Open(t, p.URL(), &forward.Options{Timeout: 500 * time.Millisecond, Logger: quiet.Logger})
	for range 8 { // on each of its channels
		send(t, target, message(3, "x"))
		targettest.Recovers(t, short, message(3, "x"))
	}
	p.DropReplies(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before, sent := count(t, ch, "orders"), make(chan error, 1)
	go func() { sent <- target.Send(ctx, message(4, "x")) }()
	for end := time.Now().Add(targettest.Patience); count(t, ch, "orders") == before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	err := <-sent
	targettest.Retried(t, err, "canceled", "may or may not have it")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	targettest.Fails(t, short, message(5, "x"), "deadline", "may or may not have it")
	p.DropReplies(false)
	p.Cut()
	targettest.Recovers(t, short, message(5, "x"))

	_, first, _ := strings.Cut(at, "@")
	host, vhost, _ := strings.Cut(first, "/")
	send(t, targettest.Open(t, "amqp://127.0.0.1:1,"+host+"/"+vhost, nil), message(6, "x"))
}

func TestUsers(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	declare(t, channelTo(t, at), "orders", nil)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	wrong := targettest.Open(t, "amqp://guest:geheimer@"+u.Host+u.Path, quiet)
	targettest.Retried(t, wrong.Send(t.Context(), message(1, "x")), "403", "check the user")
	nowhere := targettest.Open(t, "amqp://"+u.Host+"/nowhere", quiet)
	targettest.Retried(t, nowhere.Send(t.Context(), message(1, "x")), "check the vhost")
}

func TestURLs(t *testing.T) {
	t.Parallel()
	_, unconfigured := amqp.New(amqp.Config{}, nil)
	targettest.RefusedURLs(t, "amqp", map[string]string{
		"amqp://u:geheim@h/v?exchnage=x":           "exchange",
		"amqp://h?key=" + strings.Repeat("x", 256): "255",
		"amqp:":            "an example",
		"amqp://:geheim@h": "name the user",
		"amqp://u:geheim@h?password_file=/etc/none/there":   "password_file",
		"amqps://u:geheim@h/orders?ca_file=/etc/none/there": "ca_file",
	}, unconfigured)
}

func TestClose(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	declare(t, channelTo(t, at), "orders", nil)
	target := targettest.Open(t, at, nil)
	send(t, target, message(1, "x"))
	for range 2 {
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.Send(t.Context(), message(2, "x")); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
