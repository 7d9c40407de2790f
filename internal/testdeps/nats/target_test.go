package nats_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	_ "github.com/tarryhq/tarry/forward/nats"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m,
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*ipQueue[...]).pop")) // of a server's end
}

var (
	message = targettest.Message
	send    = targettest.Send
	quiet   = &forward.Options{Logger: slog.New(slog.DiscardHandler)}
)

func TestAMessageHasTheBodyAndTheMetadata(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	js := s.jetStream()
	stream := s.stream(js, jetstream.StreamConfig{Name: "S", Subjects: []string{"due.>", "orders"}})
	o := &forward.Options{Headers: []forward.Header{{Name: "Team", Value: "shop"}}}
	target := targettest.Open(t, s.url("")+"?subject=due.now&stream=S", o)
	m := message(7, "\x00\xff binary",
		forward.Header{Name: "Trace", Value: " ä\r\nb "}, forward.Header{Name: "Trace", Value: "c"},
		forward.Header{Name: "no token", Value: "x"}, forward.Header{Name: "nats-Rollup", Value: "all"},
		forward.Header{Name: "content-type", Value: "feigned"})
	send(t, target, m)
	got, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject != "due.now" || string(got.Data) != "\x00\xff binary" {
		t.Errorf("%s has %q", got.Subject, got.Data)
	}
	id := got.Header.Get("Nats-Msg-Id")
	if !strings.HasPrefix(id, "orders/7/") {
		t.Errorf("the message id is %q", id)
	}
	delete(got.Header, "Nats-Msg-Id")
	want := natsgo.Header{
		"Content-Type": {"text/plain"}, "Nats-Expected-Stream": {"S"},
		"Tarry-Id": {"7"}, "Tarry-Queue": {"orders"}, "Tarry-Key": {"order-7"}, "Tarry-Due": {"2026-05-04T03:02:01.020Z"}, "Tarry-Attempt": {"2"},
		"Trace": {"ä  b", "c"}, "Team": {"shop"},
	}
	if !maps.EqualFunc(got.Header, want, func(a, b []string) bool { return strings.Join(a, "|") == strings.Join(b, "|") }) {
		t.Errorf("got  %q\nwant %q", got.Header, want)
	}
	byQueue := targettest.Open(t, s.url(""), nil)
	send(t, byQueue, message(8, "x"))
	if got, err := stream.GetMsg(t.Context(), 2); err != nil || got.Subject != "orders" {
		t.Errorf("by the queue's name: %v, %v", got, err)
	}
}

// What is sent again in a later attempt stands in the stream once; a message with another
// body does not.
func TestRepetitionsAreDropped(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stream := s.stream(s.jetStream(), jetstream.StreamConfig{Name: "S", Subjects: []string{"orders"}})
	target := targettest.Open(t, s.url(""), nil)
	m := message(7, "one")
	for range 3 {
		send(t, target, m)
		m.Attempt++
		m.Due = m.Due.Add(time.Second)
	}
	if n := count(t, stream); n != 1 {
		t.Errorf("it is there %d times", n)
	}
	m.Body = []byte("two")
	send(t, target, m)
	other := message(8, "one")
	send(t, target, other)
	other.Created = other.Created.Add(time.Hour)
	send(t, target, other)
	if n := count(t, stream); n != 4 {
		t.Errorf("%d messages of 4", n)
	}
}

func TestManySends(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stream := s.stream(s.jetStream(), jetstream.StreamConfig{Name: "S", Subjects: []string{"orders"}})
	target := targettest.Open(t, s.url(""), nil)
	targettest.SendMany(t, target, 32, func(id uint64) *tarry.Message[[]byte] { return message(id, "x") })
	if n := count(t, stream); n != 640 {
		t.Errorf("%d messages of 640", n)
	}
	if n := s.server.NumClients(); n != 2 { // with that of the test
		t.Errorf("%d connections", n)
	}
}

func TestAServerThatIsDownAtFirstAndLater(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) { o.Port = nettest.FreePort(t) })
	s.stream(s.jetStream(), jetstream.StreamConfig{Name: "S", Subjects: []string{"orders"}})
	addr := s.server.Addr().String()
	target := targettest.Open(t, s.url("")+","+addr, &forward.Options{Timeout: 5 * time.Second, Logger: quiet.Logger})
	s.stop()
	targettest.Retried(t, target.Send(t.Context(), message(1, "one")), addr, "check that NATS runs")
	s.run()
	targettest.Recovers(t, target, message(1, "one"))
	s.stop()
	targettest.Retried(t, target.Send(t.Context(), message(2, "two")))
	s.run()
	targettest.Recovers(t, target, message(2, "two"))
	stream, err := s.jetStream().Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, stream); n != 2 {
		t.Errorf("%d messages of 2", n)
	}
}

func TestASendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	nc := s.jetStream().Conn()
	got := make(chan struct{}, 1)
	if _, err := nc.Subscribe("silent", func(*natsgo.Msg) {
		select {
		case got <- struct{}{}:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	target := targettest.Open(t, s.url("")+"?subject=silent", nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	err := target.Send(ctx, message(1, "one"))
	targettest.Retried(t, err, "canceled", "may or may not have it")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	short := targettest.Open(t, s.url("")+"?subject=silent", &forward.Options{Timeout: 300 * time.Millisecond, Logger: quiet.Logger})
	targettest.Fails(t, short, message(2, "two"), "deadline")
}

func TestWhatIsRetriedAndWhatIsBuried(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) { o.MaxPayload = 10_000 })
	js := s.jetStream()
	s.stream(js, jetstream.StreamConfig{Name: "full", Subjects: []string{"full"}, MaxMsgs: 1, Discard: jetstream.DiscardNew})
	s.stream(js, jetstream.StreamConfig{Name: "small", Subjects: []string{"small"}, MaxMsgSize: 1000})
	to := func(query string) forward.Target { return targettest.Open(t, s.url("")+"?"+query, quiet) }

	send(t, to("subject=full"), message(1, "one"))
	targettest.Retried(t, to("subject=full").Send(t.Context(), message(2, "two")), "maximum messages exceeded", "stream is full")
	targettest.Retried(t, to("subject=nowhere").Send(t.Context(), message(1, "one")), "no stream has this subject")
	targettest.Retried(t, to("subject=small&stream=full").Send(t.Context(), message(1, "one")), "expected stream does not match", "another stream")
	target := to("subject=small")
	targettest.BuriedWith(t, target.Send(t.Context(), message(1, strings.Repeat("x", 2000))), "message size exceeds maximum allowed", "max_msg_size")
	targettest.BuriedWith(t, target.Send(t.Context(), message(2, strings.Repeat("x", 20_000))), "maximum payload exceeded", "takes 10000")
	send(t, target, message(3, "three"))

	if _, err := js.Conn().Subscribe("echo", func(m *natsgo.Msg) { _ = m.Respond([]byte("what?")) }); err != nil {
		t.Fatal(err)
	}
	if err := js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	targettest.Retried(t, to("subject=echo").Send(t.Context(), message(1, "one")), "not a stream; choose another")

	for _, queue := range []string{"a..b", ".a", "a.", "$JS.API.STREAM.DELETE.full"} {
		m := message(1, "one")
		m.Queue = queue
		targettest.BuriedWith(t, to("").Send(t.Context(), m), "not a subject", "give subject")
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "geheim"},
			{Username: "other", Password: "geheim", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"orders"}}}},
		}
	})
	js := s.jetStream(natsgo.UserInfo("admin", "geheim"))
	stream := s.stream(js, jetstream.StreamConfig{Name: "S", Subjects: []string{"orders"}})
	send(t, targettest.Open(t, s.url("admin:geheim@"), nil), message(1, "one"))
	wrong := targettest.Open(t, s.url("admin:geheimer@"), quiet)
	for range 3 {
		targettest.Retried(t, wrong.Send(t.Context(), message(1, "one")), "Authorization", "check the user")
	}
	denied := targettest.Open(t, s.url("other:geheim@"), &forward.Options{Timeout: 300 * time.Millisecond, Logger: quiet.Logger})
	targettest.Fails(t, denied, message(2, "two"), "deadline", "ermissions violation")
	if n := count(t, stream); n != 1 {
		t.Errorf("%d messages of 1", n)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.stream(s.jetStream(), jetstream.StreamConfig{Name: "S", Subjects: []string{"orders"}})
	target := targettest.Open(t, s.url(""), nil)
	send(t, target, message(1, "one"))
	for range 2 {
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.Send(t.Context(), message(2, "two")); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cfg, file, _ := nettest.Certificate(t)
	s := start(t, func(o *server.Options) { o.TLS, o.TLSConfig = true, cfg })
	addr := s.server.Addr().String()
	s.stream(s.jetStream(natsgo.RootCAs(file)), jetstream.StreamConfig{Name: "S", Subjects: []string{"orders"}})
	send(t, targettest.Open(t, "tls://"+addr+"?ca_file="+file, nil), message(1, "one"))
	targettest.Retried(t, targettest.Open(t, "tls://"+addr, quiet).Send(t.Context(), message(1, "one")), "certificate")
	targettest.Retried(t, targettest.Open(t, "nats://"+addr, quiet).Send(t.Context(), message(1, "one")))
}
