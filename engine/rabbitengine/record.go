package rabbitengine

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Headers that store a message's fields. Times are milliseconds since 1970.
const (
	headerQueue   = "tarry-queue"   // text
	headerDue     = "tarry-due"     // time
	headerCreated = "tarry-created" // time
	headerAttempt = "tarry-attempt" // number of attempts
	headerError   = "tarry-error"   // error of the last attempt
	headerDied    = "tarry-died"    // time of death
	headerTerms   = "tarry-terms"   // bytes: the policy, the content type and the headers, as package codec writes them
)

// The broker's headers.
const (
	headerDeliveries = "x-delivery-count" // number of failed deliveries
	headerDeaths     = "x-death"          // the queues that dead-lettered it, and why
)

// givenUp reports whether a queue dead-lettered a message because it exceeded the delivery
// limit before its attempts could be stored.
func givenUp(d *amqp.Delivery) bool {
	deaths, _ := d.Headers[headerDeaths].([]any)
	return slices.ContainsFunc(deaths, func(death any) bool {
		why, _ := death.(amqp.Table)
		return why["reason"] == "delivery_limit"
	})
}

// shortMost is the most bytes of a short string in AMQP.
const shortMost = 255

// publishing converts a message for RabbitMQ.
func publishing(m *engine.Info) amqp.Publishing {
	terms := codec.AppendPolicy(nil, &m.Policy)
	terms = codec.AppendContent(terms, &engine.Content{ContentType: m.ContentType, Headers: m.Headers})
	h := amqp.Table{
		headerQueue: m.Queue, headerDue: m.Due.UnixMilli(), headerCreated: m.Created.UnixMilli(),
		headerAttempt: int64(m.Attempt), headerTerms: terms,
	}
	if m.LastError != "" {
		h[headerError] = m.LastError
	}
	if !m.Died.IsZero() {
		h[headerDied] = m.Died.UnixMilli()
	}
	p := amqp.Publishing{
		Headers: h, DeliveryMode: amqp.Persistent, MessageId: m.ID.String(), Timestamp: m.Created, Body: m.Body,
	}
	if len(m.ContentType) <= shortMost {
		p.ContentType = m.ContentType
	}
	return p
}

// received converts a delivery from a known queue. A message from another producer is due from
// its arrival on, with the default policy.
func received(d *amqp.Delivery, queue string, now time.Time, newID func() engine.ID) *engine.Info {
	m := &engine.Info{Queue: queue, State: engine.Ready, Content: engine.Content{Body: d.Body, ContentType: d.ContentType}}
	m.ID, _ = engine.ParseID(d.MessageId)
	terms, ours := d.Headers[headerTerms].([]byte)
	if ours {
		r := codec.Reader{B: terms}
		m.Policy = r.Policy()
		c := r.Content()
		if ours = r.Err == nil; ours {
			m.ContentType, m.Headers = c.ContentType, c.Headers
		}
	}
	if !ours {
		m.Policy = new(engine.Terms).Resolve(nil)
		m.Headers = foreign(d.Headers)
		m.Created, m.Due = d.Timestamp, now
	}
	if m.ID == 0 {
		m.ID = newID()
	}
	instant(d.Headers, headerDue, &m.Due)
	instant(d.Headers, headerCreated, &m.Created)
	instant(d.Headers, headerDied, &m.Died)
	if m.Due.IsZero() {
		m.Due = now
	}
	if m.Created.IsZero() {
		m.Created = m.Due
	}
	m.Due, m.Created = m.Due.UTC().Truncate(time.Millisecond), m.Created.UTC().Truncate(time.Millisecond)
	m.LastError, _ = d.Headers[headerError].(string)
	n, _ := number(d.Headers[headerAttempt])
	again, _ := number(d.Headers[headerDeliveries])
	if d.Redelivered {
		again = max(again, 1) // a classic queue does not count
	}
	m.Attempt = uint32(min(clamped(n)+clamped(again), engine.MaxMaxAttempts))
	return m
}

// clamped bounds a number of attempts, which another producer may have written.
func clamped(n int64) int64 { return min(max(0, n), engine.MaxMaxAttempts) }

// millisMost is the last millisecond of the year 9999.
var millisMost = time.Date(engine.MaxYear, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()

func instant(h amqp.Table, name string, to *time.Time) {
	if ms, ok := number(h[name]); ok && ms <= millisMost && ms >= -millisMost {
		*to = time.UnixMilli(ms).UTC()
	}
}

// number reads an integer of any width.
func number(v any) (int64, bool) {
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return n.Int(), true
	case n.CanUint():
		return int64(min(n.Uint(), math.MaxInt64)), true
	}
	return 0, false
}

// foreign returns another producer's headers that are strings or numbers, without the
// broker's own, within tarry's limits.
func foreign(h amqp.Table) []engine.Header {
	var out []engine.Header
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if len(name) > 1 && name[:2] == "x-" {
			continue
		}
		var value string
		switch v := h[name].(type) {
		case string:
			value = v
		case []byte:
			value = string(v)
		case bool:
			value = strconv.FormatBool(v)
		case float64:
			value = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			n, ok := number(v)
			if !ok {
				continue
			}
			value = strconv.FormatInt(n, 10)
		}
		header := engine.Header{Name: name, Value: value}
		if bytes += len(name) + len(value); bytes > engine.MaxHeaderBytes || len(out) == engine.MaxHeaders {
			break
		}
		out = append(out, header)
	}
	return out
}
