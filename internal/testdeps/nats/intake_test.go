package nats_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/intake"
	_ "github.com/tarryhq/tarry/intake/nats"
	"github.com/tarryhq/tarry/internal/targettest"
)

// fullStore returns a store that takes nothing while full.
func fullStore(t *testing.T, full *atomic.Bool) *tarry.Client {
	t.Helper()
	c, err := tarry.Open(t.Context(), "mem:", &tarry.Config{PushMiddleware: []tarry.PushMiddleware{func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
			if full.Load() {
				return nil, &tarry.Error{Op: "push", Err: tarry.ErrNoSpace}
			}
			return next(ctx, call)
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func begin(t *testing.T, c *tarry.Client, source string) *targettest.Intakes {
	t.Helper()
	return targettest.Take(t, c, intake.Intake{Queue: "orders", Source: source, Options: intake.Options{Timeout: 2 * time.Second}})
}

func publish(t *testing.T, js jetstream.JetStream, body string, headers ...string) {
	t.Helper()
	msg := &nats.Msg{Subject: "delayed.a", Data: []byte(body), Header: make(nats.Header)}
	for i := 0; i < len(headers); i += 2 {
		msg.Header.Add(headers[i], headers[i+1])
	}
	if _, err := js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
}

// acked waits until the consumer has nothing to take and nothing unacked.
func acked(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	c, err := js.Consumer(t.Context(), "DELAYED", "tarry")
	for end := time.Now().Add(targettest.Patience); err == nil; time.Sleep(5 * time.Millisecond) {
		var info *jetstream.ConsumerInfo
		if info, err = c.Info(t.Context()); err == nil && info.NumPending+uint64(info.NumAckPending) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", info)
		}
	}
	t.Fatal(err)
}

const declared = "?stream=DELAYED&declare=true&subject=delayed.*"

// What a stream has is pushed, with what its headers say, and acked; what cannot be is set aside.
func TestMessagesArePushedAndAcked(t *testing.T) {
	t.Parallel()
	s, c := start(t, nil), targettest.Store(t)
	js := s.jetStream()
	w := begin(t, c, s.url("")+declared)
	w.Runs()
	publish(t, js, "early", "Key", "k", "Delay", "1h", "Trace", "a", "Trace", "b", "Content-Type", "text/plain")
	publish(t, js, "at", "due", "2100-01-02T03:04:05Z")
	publish(t, js, "no", "delay", "soon", "Nats-Expected-Stream", "DELAYED")
	publish(t, js, "no", "key", strings.Repeat("k", 600))
	publish(t, js, "gone", "key", "g", "delay", "1h")
	publish(t, js, "", "cancel", "g")
	st := w.Awaits("all are taken", func(st intake.Status) bool { return st.Taken == 6 && st.Unacked == 0 })
	if st.Pushed != 3 || st.Cancelled != 1 || st.Refused != 2 {
		t.Errorf("the status is %+v", st)
	}
	m, err := c.Get(t.Context(), tarry.ByKey("k").Of("orders"))
	if err != nil || string(m.Body) != "early" || m.ContentType != "text/plain" || fmt.Sprint(m.Headers) != "[{Trace a} {Trace b}]" || time.Until(m.Due) < 59*time.Minute {
		t.Errorf("%+v, %v", m, err)
	}
	acked(t, js)
	refused, err := js.Stream(t.Context(), "DELAYED-refused")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := refused.GetMsg(t.Context(), 1)
	if err != nil || string(msg.Data) != "no" || msg.Header.Get("delay") != "soon" || !strings.Contains(msg.Header.Get("Refused"), "delay: ") {
		t.Errorf("%+v, %v", msg, err)
	}
	if msg, err = refused.GetMsg(t.Context(), 2); err != nil || msg.Header.Get("Refused") != "the key has 600 bytes; at most 512 are allowed" {
		t.Errorf("%+v, %v", msg, err)
	}
	source, err := intake.Open(s.url("")+"?stream=DELAYED", intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, found, err := source.Connect(t.Context())
	if err == nil {
		conn.Close()
	}
	if found != `the stream "DELAYED" has 6 messages, of which the consumer "tarry" has 0 to take` {
		t.Errorf("%q, %v", found, err)
	}
}

// The server is killed again and again: what comes again is pushed once.
func TestMessagesThatComeAgainArePushedOnce(t *testing.T) {
	t.Parallel()
	s, c := start(t, nil), targettest.Store(t)
	w := begin(t, c, s.url("")+declared+"&prefetch=50")
	w.Runs()
	for round := range 3 {
		js := s.jetStream()
		for n := range 100 {
			publish(t, js, fmt.Sprint(round, n), "delay", "1h")
		}
		w.Awaits("some are taken", func(st intake.Status) bool { return st.Taken > int64(round*100+20) })
		s.stop()
		w.Fails(intake.CodeUnreachable)
		s.run()
		w.Runs()
	}
	w.Awaits("all are pushed", func(st intake.Status) bool { return st.Pushed == 300 })
	js := s.jetStream()
	acked(t, js) // what the intake still held would not count again
	before := w.Status()[0].Doubles
	if err := js.DeleteConsumer(t.Context(), "DELAYED", "tarry"); err != nil {
		t.Fatal(err)
	}
	w.Awaits("all came again", func(st intake.Status) bool { return st.Pushed == 300 && st.Doubles >= before+300 })
	acked(t, js)
	if q, err := c.Queue(t.Context(), "orders"); err != nil || q.Scheduled != 300 {
		t.Errorf("%+v, %v", q, err)
	}
}

// What comes again while the intake holds it is taken once, and set aside once.
func TestMessagesAreHeldForLong(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	js := s.jetStream()
	stream := s.stream(js, jetstream.StreamConfig{Name: "DELAYED", Subjects: []string{"delayed.*"}})
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "tarry", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var full atomic.Bool
	full.Store(true)
	w := begin(t, fullStore(t, &full), s.url("")+"?stream=DELAYED")
	const n = 50
	for range n {
		publish(t, js, "yes", "delay", "1h")
		publish(t, js, "no", "delay", "soon")
	}
	w.Awaits("all are taken", func(st intake.Status) bool { return st.Taken == 2*n && st.Refused == n })
	for end := time.Now().Add(targettest.Patience); ; time.Sleep(10 * time.Millisecond) {
		info, err := consumer.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.NumRedelivered == 2*n && info.Delivered.Consumer >= 3*2*n { // each has come again, some twice
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", info)
		}
	}
	if st := w.Status()[0]; st.Taken != 2*n || st.Redelivered != 0 {
		t.Errorf("while they are held the status is %+v", st)
	}
	full.Store(false)
	w.Awaits("all others are pushed", func(st intake.Status) bool { return st.Pushed == n })
	aside := s.stream(js, jetstream.StreamConfig{Name: "REFUSED", Subjects: []string{"DELAYED.refused"}})
	acked(t, js)
	info, err := aside.Info(t.Context())
	// What is acked while it is delivered once more is taken again.
	st := w.Status()[0]
	again := st.Redelivered
	if st.Taken != 2*n+again || st.Pushed != n || st.Refused < n || st.Doubles+st.Refused != n+again {
		t.Errorf("the status is %+v", st)
	}
	if err != nil || info.State.Msgs < n || info.State.Msgs > uint64(st.Refused) {
		t.Errorf("%+v, %v", info, err)
	}
}

// The missing stream and consumer, wrong users, a refused message without a stream: each is a state.
func TestTroublesOfAnIntake(t *testing.T) {
	t.Parallel()
	s, c := start(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "own", Password: "geheim"},
			{Username: "other", Password: "geheim", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.CONSUMER.MSG.NEXT.>"}}}},
		}
	}), targettest.Store(t)
	js := s.jetStream(nats.UserInfo("own", "geheim"))
	w := begin(t, c, s.url("own:geheim@")+"?stream=DELAYED")
	w.Fails("no_stream")
	stream := s.stream(js, jetstream.StreamConfig{Name: "DELAYED", Subjects: []string{"delayed.*"}})
	w.Fails("no_consumer")
	if _, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "tarry", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	w.Runs()
	publish(t, js, "no", "delay", "soon")
	w.Fails("refused_stream")
	s.stream(js, jetstream.StreamConfig{Name: "REFUSED", Subjects: []string{"DELAYED.refused"}})
	w.Runs()
	acked(t, js)
	w.End()
	w = begin(t, c, s.url("own:geheimer@")+"?stream=DELAYED")
	w.Fails(intake.CodeCredentials)
	w.End()
	w = begin(t, c, s.url("other:geheim@")+"?stream=DELAYED")
	w.Fails(intake.CodeForbidden)
}

func TestURLsOfSources(t *testing.T) {
	t.Parallel()
	for at, part := range map[string]string{
		"nats://u:geheim@h":                          "stream is missing",
		"nats://u:geheim@h?stream=a&durable=":        "durable is empty",
		"nats://u:geheim@h?stream=a&subject=b":       "declare=true",
		"nats://u:geheim@h?stream=a&prefetch=0":      "prefetch is 1 to",
		"nats://u:geheim@h?strem=a&stream=b":         `no option "strem"`,
		"nats://u:geheim@h/path?stream=a":            "an example",
		"tls://h?stream=a&ca_file=/etc/none/there":   "ca_file",
		"nats://u:geheim@h?stream=a&creds_file=/etc": "not both",
	} {
		if _, err := intake.Open(at, intake.Options{}); err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", at, err)
		}
	}
}
