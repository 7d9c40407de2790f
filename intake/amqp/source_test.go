package amqp

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/intake"
)

func TestAMessageArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "orders", "work", "topic", "order.#")
	w := begin(t, "mem:", delayed(t, at))
	w.Runs()
	headers := rabbit.Table{
		"bool": true, "byte": int8(-3), "ubyte": uint8(200), "short": int16(-300), "ushort": uint16(60000), "int": int32(-70000), "uint": uint32(4e9),
		"long": int64(math.MinInt64), "float": float32(1.5), "double": math.Pi, "decimal": rabbit.Decimal{Scale: 2, Value: -314},
		"text": "ä\r\n\xff", "bytes": []byte{0, 1, 255}, "void": nil, "time": time.Unix(1_700_000_000, 0),
		"array": []any{int32(1), "two", []any(nil), rabbit.Table{"three": int64(3)}}, "table": rabbit.Table{"deep": rabbit.Table{"empty": rabbit.Table{}}},
		"x-death": []any{rabbit.Table{"count": int64(1)}}, "x-delay": int32(300),
	}
	sent := rabbit.Publishing{Headers: headers, ContentType: "application/json", ContentEncoding: "gzip", Priority: 7, CorrelationId: "c-1",
		ReplyTo: "answers", Expiration: "3600000", MessageId: "m-1", Timestamp: time.Unix(1_600_000_000, 0), Type: "order", UserId: "guest", AppId: "shop",
		Body: []byte("\x00\xff body")}
	began := time.Now()
	publish(t, ch, "delayed", "order.eu.late", sent)
	d := take(t, ch, "orders")
	if early := 300*time.Millisecond - time.Since(began); early > 0 {
		t.Errorf("it came %s early", early)
	}
	if d.Headers["x-delay"] != int32(-300) {
		t.Errorf("x-delay is %v", d.Headers["x-delay"])
	}
	delete(headers, "x-delay")
	delete(d.Headers, "x-delay")
	if !reflect.DeepEqual(d.Headers, headers) {
		t.Errorf("got  %#v\nwant %#v", d.Headers, headers)
	}
	got := rabbit.Publishing{Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body}
	if sent.Headers = headers; !reflect.DeepEqual(got, sent) || d.DeliveryMode != rabbit.Persistent || d.RoutingKey != "order.eu.late" || d.Exchange != "work" {
		t.Errorf("got  %+v by %s of %s, mode %d\nwant %+v", got, d.RoutingKey, d.Exchange, d.DeliveryMode, sent)
	}
	publish(t, ch, "delayed", "order", rabbit.Publishing{})
	if d := take(t, ch, "orders"); len(d.Headers) != 0 || len(d.Body) != 0 || d.MessageId != "" || !d.Timestamp.IsZero() {
		t.Errorf("nothing became %+v", d)
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		header any
		want   time.Duration
		err    error
	}{
		{nil, 0, nil}, {int32(0), 0, nil}, {int64(-5000), 0, nil}, {int64(-1e13), 0, nil}, {-1e300, 0, nil}, {int32(5000), 5 * time.Second, nil}, {int8(5), 5 * time.Millisecond, nil},
		{uint8(200), 200 * time.Millisecond, nil}, {int16(300), 300 * time.Millisecond, nil}, {uint16(60000), time.Minute, nil},
		{uint32(4e9), 4e9 * time.Millisecond, nil}, {int64(1 << 32), 1 << 32 * time.Millisecond, nil}, {int64(math.MaxInt64), 0, errLong},
		{"5000", 5 * time.Second, nil}, {"-1", 0, nil}, {"soon", 0, errDelay}, {"1.5", 0, errDelay}, {"", 0, errDelay},
		{float64(1999.9), 1999 * time.Millisecond, nil}, {float32(-0.5), 0, nil}, {math.NaN(), 0, errDelay}, {math.Inf(1), 0, errLong}, {math.Inf(-1), 0, nil},
		{true, 0, nil}, {rabbit.Table{}, 0, nil}, {[]any{}, 0, nil}, {time.Now(), 0, nil},
		{int64(200 * year / time.Millisecond), 200 * year, nil},
	} {
		if got, err := delayOf(c.header); got != c.want || err != c.err {
			t.Errorf("%T %[1]v is a delay of %s, %v, not %s, %v", c.header, got, err, c.want, c.err)
		}
	}
}

// Each kind of exchange is declared, and its queue takes what is published to it.
func TestExchangesAreDeclared(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "orders", "work", "fanout", "")
	for kind, options := range map[string][]string{"topic": nil, "direct": {"bind", "k", "bind", "other"}, "fanout": nil, "headers": {"queue_type", "classic"}} {
		i := delayed(t, at, append(options, "type", kind)...)
		i.Source = with(t, at, append(options, "queue", "q."+kind, "exchange", "e."+kind, "type", kind, "declare", "true")...)
		w := begin(t, "mem:", i)
		w.Runs()
		publish(t, ch, "e."+kind, "k", rabbit.Publishing{Body: []byte(kind)})
		if d := take(t, ch, "orders"); string(d.Body) != kind || d.RoutingKey != "k" {
			t.Errorf("%s: got %q by %q", kind, d.Body, d.RoutingKey)
		}
		w.end()
	}
	source, err := intake.Open(delayed(t, at).Source, intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, found, err := source.Connect(t.Context())
	if err == nil {
		conn.Close()
	}
	if err != nil || found != `the queue "tarry.delayed" of RabbitMQ has 0 messages ready and 0 consumers` {
		t.Errorf("found %q, %v", found, err)
	}
}

func TestKeysAndCancels(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "orders", "work", "fanout", "")
	w := begin(t, "mem:", delayed(t, at))
	w.Runs()
	send := func(body string, headers rabbit.Table) {
		publish(t, ch, "delayed", "k", rabbit.Publishing{Body: []byte(body), Headers: headers})
	}
	for n := range 20 {
		send("cancelled", rabbit.Table{"x-delay": int32(400), "x-tarry-key": fmt.Sprint(n)})
		send("", rabbit.Table{"x-tarry-cancel": fmt.Sprint(n)})
	}
	send("once", rabbit.Table{"x-delay": int32(500), "x-tarry-key": "a"})
	send("twice", rabbit.Table{"x-tarry-key": "a"})
	send("", rabbit.Table{"x-tarry-cancel": "b"})
	if d := take(t, ch, "orders"); string(d.Body) != "once" {
		t.Errorf("got %q", d.Body)
	}
	st := w.Awaits("all are acked", func(st intake.Status) bool { return st.Taken == 43 && st.Unacked == 0 })
	if st.Pushed != 21 || st.Cancelled != 20 || st.Missed != 1 || st.Doubles != 1 {
		t.Errorf("the status is %+v", st)
	}
}

// A program that retries publishes a message again, with its id: that is no repetition.
func TestARetryWithTheSameIDIsPushed(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "orders", "work", "fanout", "")
	w := begin(t, "mem:", delayed(t, at))
	w.Runs()
	m := rabbit.Publishing{MessageId: "\xffid", Body: []byte("x"), Headers: rabbit.Table{"x-delay": int32(1)}}
	for _, change := range []func(){func() {}, func() { m.Headers["attempt"] = int32(2) }, func() { m.Headers["x-delay"] = int32(2) }, func() { m.Body = []byte("y") }} {
		change()
		publish(t, ch, "delayed", "k", m)
		publish(t, ch, "delayed", "k", m)
		take(t, ch, "orders")
	}
	st := w.Awaits("all are taken", func(st intake.Status) bool { return st.Taken == 8 && st.Unacked == 0 })
	if st.Pushed != 4 || st.Doubles != 4 {
		t.Errorf("the status is %+v", st)
	}
}
