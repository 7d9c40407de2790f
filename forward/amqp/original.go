package amqp

import (
	"cmp"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// ExchangeHeader is the AMQP header in which an original may name its exchange.
const ExchangeHeader = "x-tarry-exchange"

// userHeader has the user-id of an original, if it is another user's: RabbitMQ accepts only
// that of the connection as a property.
const userHeader = "x-tarry-user-id"

// original returns a message as it was when an intake took it.
func (t *Target) original(m *tarry.Message[[]byte], envelope string) (exchange, key string, msg *amqp.Publishing, err error) {
	e, err := rabbit.ParseEnvelope(envelope)
	if err != nil {
		return "", "", nil, tarry.Bury(link.Fault(err, "only an intake may write it"))
	}
	msg = &e.Properties
	if msg.Headers == nil {
		msg.Headers = make(amqp.Table)
	}
	exchange = t.cfg.Exchange
	if name, ok := msg.Headers[ExchangeHeader].(string); ok && len(t.cfg.Exchanges) > 0 {
		if !slices.Contains(t.cfg.Exchanges, name) && !slices.Contains(t.cfg.Exchanges, "*") {
			return "", "", nil, tarry.Bury(link.Fault(fmt.Errorf("its header %s names the exchange %q, which is not allowed", ExchangeHeader, name),
				"add it to exchanges= of the target"))
		}
		exchange = name
	}
	if msg.UserId != "" && msg.UserId != t.broker.User {
		msg.Headers[userHeader] = msg.UserId
		msg.UserId = ""
	}
	headers := t.opts.Headers
	if t.cfg.Metadata {
		headers = forward.Metadata(m, t.opts)
	}
	for _, h := range headers {
		if h.Name != rabbit.EnvelopeHeader && len(h.Name) <= rabbit.MaxShort {
			msg.Headers[h.Name] = h.Value
		}
	}
	msg.DeliveryMode, msg.Body = amqp.Persistent, m.Body
	return exchange, cmp.Or(t.cfg.Key, e.Key), msg, nil
}
