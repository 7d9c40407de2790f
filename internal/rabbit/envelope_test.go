package rabbit

import (
	"encoding/base64"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func full() *Envelope {
	return &Envelope{Key: "order.late", Properties: amqp.Publishing{
		Headers: amqp.Table{
			"bool": false, "byte": int8(-3), "ubyte": uint8(200), "short": int16(-300), "ushort": uint16(60000), "int": int32(-70000), "uint": uint32(4e9),
			"long": int64(math.MinInt64), "float": float32(1.5), "double": math.Inf(-1), "decimal": amqp.Decimal{Scale: 2, Value: -314},
			"text": "ä\xff", "bytes": []byte{0, 255}, "void": nil, "time": time.Unix(1_700_000_000, 0),
			"array": []any{"two", []any{}, amqp.Table{}}, "": amqp.Table{"deep": amqp.Table{"x": int64(1)}},
		},
		ContentType: "a", ContentEncoding: "b", Priority: 9, CorrelationId: "c", ReplyTo: "d", Expiration: "e",
		MessageId: "f", Timestamp: time.Unix(1_600_000_000, 0), Type: "g", UserId: "h", AppId: "i",
	}}
}

func TestAnEnvelopeKeepsWhatItHolds(t *testing.T) {
	for _, e := range []*Envelope{full(), {Key: "k", Properties: amqp.Publishing{Headers: amqp.Table(nil)}}, {}} {
		got, err := ParseEnvelope(e.Text())
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, e)
		}
	}
	if small := (&Envelope{Key: "order.due", Properties: amqp.Publishing{Headers: amqp.Table{"x-delay": int32(-5000)}}}).Text(); len(small) > 90 {
		t.Errorf("a small envelope has %d bytes", len(small))
	}
}

// The stored form does not change.
func TestTheFormOfAnEnvelope(t *testing.T) {
	e := &Envelope{Key: "k", Properties: amqp.Publishing{Headers: amqp.Table{"x-delay": int32(-5000)}, MessageId: "m"}}
	const want = "AUEAAAApUwAAAAFrRgAAAA0HeC1kZWxheUn//+x4QgBWVlZWVlZTAAAAAW1WVlY"
	if got := e.Text(); got != want {
		t.Errorf("it is %q", got)
	}
}

func TestWhatIsNoEnvelope(t *testing.T) {
	good := full().Text()
	for n := range good {
		if e, err := ParseEnvelope(good[:n]); err == nil {
			t.Fatalf("cut to %d bytes it is %+v", n, e)
		}
	}
	deep := []byte{envelopeVersion}
	for range 100 {
		deep = append(deep, 'A', 0, 0, 255, 255)
	}
	nested := any("x")
	for range maxDepth {
		nested = []any{nested}
	}
	for _, text := range []string{"", "?", "AA", (&Envelope{Properties: amqp.Publishing{Headers: amqp.Table{"x": nested}}}).Text(), base64.RawStdEncoding.EncodeToString(deep), good + "AAAA",
		(&Envelope{Properties: amqp.Publishing{AppId: strings.Repeat("x", 256)}}).Text()} {
		if e, err := ParseEnvelope(text); err == nil {
			t.Errorf("%q is %+v", text, e)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(full().Text()))
	f.Add([]byte((&Envelope{}).Text()))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range []string{string(b), base64.RawStdEncoding.EncodeToString(b)} {
			e, err := ParseEnvelope(text)
			if err != nil {
				continue
			}
			if err := e.Properties.Headers.Validate(); err != nil {
				t.Errorf("%q cannot be published: %v", text, err)
			}
			if again, err := ParseEnvelope(e.Text()); err != nil || again.Text() != e.Text() {
				t.Errorf("%q comes back as %+v, %v", text, again, err)
			}
		}
	})
}
