package amqp

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// Headers of messages that an intake heeds.
const (
	delayHeader  = "x-delay"
	keyHeader    = "x-tarry-key"
	cancelHeader = "x-tarry-cancel"
)

// counts are headers that quorum queues set and change with each delivery.
var counts = []string{"x-delivery-count", "x-acquired-count"}

// message converts a delivery.
func message(d *amqp.Delivery) *intake.Message {
	e := envelope(d)
	m := &intake.Message{Redelivered: d.Redelivered, SenderID: senderID(d, e), Receipt: d}
	if m.Draft.Due.In, m.Refused = delayOf(d.Headers[delayHeader]); m.Draft.Due.In > 0 {
		e.Properties.Headers[delayHeader] = negative(m.Draft.Due.In)
	}
	texts := [...]*string{&m.Draft.Key, &m.Cancel}
	for n, name := range [...]string{keyHeader, cancelHeader} {
		if v, has := d.Headers[name]; has {
			if *texts[n], _ = v.(string); *texts[n] == "" {
				m.Refused = fmt.Errorf("its header %s is no text", name)
			}
		}
	}
	m.Draft.Body = d.Body
	if utf8.ValidString(d.ContentType) {
		m.Draft.ContentType = d.ContentType
	}
	m.Draft.Headers = []tarry.MessageHeader{{Name: rabbit.EnvelopeHeader, Value: e.Text()}}
	return m
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// senderID returns the message-id with a checksum of the message: programs retry by
// publishing a message again with its id and another x-delay or header, which is no
// repetition.
func senderID(d *amqp.Delivery, e *rabbit.Envelope) string {
	if d.MessageId == "" {
		return ""
	}
	sum := crc32.Update(crc32.Checksum([]byte(e.Text()), castagnoli), castagnoli, d.Body)
	return fmt.Sprintf("%s/%08x", strings.ToValidUTF8(d.MessageId, "?"), sum)
}

// envelope returns what a delivery has besides its body.
func envelope(d *amqp.Delivery) *rabbit.Envelope {
	h := maps.Clone(d.Headers)
	if h == nil {
		h = make(amqp.Table)
	}
	for _, name := range counts {
		delete(h, name)
	}
	return &rabbit.Envelope{Key: d.RoutingKey, Properties: amqp.Publishing{
		Headers: h, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId,
		Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId,
	}}
}

var (
	errDelay = errors.New("its header x-delay is no number of milliseconds")
	errLong  = errors.New("its header x-delay is over 290 years")
)

// delayOf returns the delay that the header x-delay says: whole milliseconds as any number,
// also as text; 0 for none. What is no number means none, as to the plugin, but a text is
// wrong: the plugin broke the publisher's connection.
func delayOf(v any) (time.Duration, error) {
	if text, is := v.(string); is {
		whole, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, errDelay
		}
		v = whole
	}
	var ms float64
	switch number := reflect.ValueOf(v); {
	case number.CanInt():
		ms = float64(number.Int())
	case number.CanUint():
		ms = float64(number.Uint())
	case number.CanFloat():
		ms = number.Float()
	}
	switch {
	case math.IsNaN(ms):
		return 0, errDelay
	case ms <= 0:
		return 0, nil
	case ms >= float64(math.MaxInt64/time.Millisecond):
		return 0, errLong
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// negative returns a delay as the plugin left it in the header: so a receiver sees it, and
// no exchange delays the message again.
func negative(d time.Duration) any {
	ms := -d.Milliseconds()
	if ms >= math.MinInt32 {
		return int32(ms)
	}
	return ms
}
