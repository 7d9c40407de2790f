package rabbit

import (
	"encoding/base64"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// EnvelopeHeader is the name of the header of a message of tarry that holds an Envelope.
const EnvelopeHeader = "tarry-amqp"

// Envelope is an AMQP message without its body.
type Envelope struct {
	Key        string // the routing key
	Properties amqp.Publishing
}

// envelopeVersion is the first byte of an envelope. The rest is a field array of AMQP, whose
// elements are those of fields; absent ones are void. All is in base64.
const envelopeVersion = 1

var errEnvelope = errors.New("the header " + EnvelopeHeader + " is no envelope of an AMQP message")

// texts are the text properties of a message, in the order of the envelope.
func texts(p *amqp.Publishing) []*string {
	return []*string{&p.ContentType, &p.ContentEncoding, &p.CorrelationId, &p.ReplyTo,
		&p.Expiration, &p.MessageId, &p.Type, &p.UserId, &p.AppId}
}

// Text returns the envelope as the value of a header.
func (e *Envelope) Text() string { return base64.RawStdEncoding.EncodeToString(e.bytes()) }

func (e *Envelope) bytes() []byte {
	p := e.Properties
	fields := append(make([]any, 0, 13), e.Key, p.Headers, p.Priority, nil)
	if len(p.Headers) == 0 {
		fields[1] = nil
	}
	if !p.Timestamp.IsZero() {
		fields[3] = p.Timestamp
	}
	for _, text := range texts(&p) {
		if *text == "" {
			fields = append(fields, nil)
			continue
		}
		fields = append(fields, *text)
	}
	return appendField(append(make([]byte, 0, 256), envelopeVersion), fields)
}

// ParseEnvelope parses the form of Text.
func ParseEnvelope(text string) (*Envelope, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || b[0] != envelopeVersion {
		return nil, errEnvelope
	}
	r := fieldReader{b: b[1:]}
	fields, _ := r.field().([]any)
	if e := new(Envelope); !r.failed && len(r.b) == 0 && len(fields) > 4 {
		e.Key, _ = fields[0].(string)
		e.Properties.Headers, _ = fields[1].(amqp.Table)
		e.Properties.Priority, _ = fields[2].(uint8)
		e.Properties.Timestamp, _ = fields[3].(time.Time)
		for n, text := range texts(&e.Properties) {
			if 4+n < len(fields) {
				*text, _ = fields[4+n].(string)
			}
			if len(*text) > MaxShort {
				return nil, errEnvelope
			}
		}
		return e, nil
	}
	return nil, errEnvelope
}

// Bytes bounds the size of a message's properties in a frame, which is smaller than in an
// envelope.
func Bytes(p *amqp.Publishing) int {
	const framing = 32
	return framing + len((&Envelope{Properties: *p}).bytes())
}
