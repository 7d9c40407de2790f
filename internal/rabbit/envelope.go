package rabbit

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	"reflect"
	"slices"
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

// maxDepth is how deeply tables and arrays may nest. RabbitMQ's client has the same bound.
const maxDepth = 32

// fixed has a value of each type of field that has a fixed size, by the byte that names it.
var fixed = map[byte]any{
	't': false, 'B': uint8(0), 'b': int8(0), 's': int16(0), 'u': uint16(0), 'I': int32(0), 'i': uint32(0),
	'l': int64(0), 'f': float32(0), 'd': float64(0), 'D': amqp.Decimal{},
}

// types are the bytes that name them.
var types = make(map[reflect.Type]byte)

func init() {
	for name, of := range fixed {
		types[reflect.TypeOf(of)] = name
	}
}

// appendField appends a field of a table as RabbitMQ writes it, the names of tables sorted.
// v has one of the types that RabbitMQ's client reads.
func appendField(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'V')
	case string:
		return append(binary.BigEndian.AppendUint32(append(b, 'S'), uint32(len(v))), v...)
	case []byte:
		return appendSized(b, 'x', func(b []byte) []byte { return append(b, v...) })
	case time.Time:
		return binary.BigEndian.AppendUint64(append(b, 'T'), uint64(v.Unix()))
	case []any:
		return appendSized(b, 'A', func(b []byte) []byte {
			for _, each := range v {
				b = appendField(b, each)
			}
			return b
		})
	case amqp.Table:
		return appendSized(b, 'F', func(b []byte) []byte {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				b = append(append(b, byte(len(name))), name...)
				b = appendField(b, v[name])
			}
			return b
		})
	}
	b, _ = binary.Append(append(b, types[reflect.TypeOf(v)]), binary.BigEndian, v) // its size is fixed
	return b
}

// appendSized appends what add appends, after its type and size.
func appendSized(b []byte, name byte, add func([]byte) []byte) []byte {
	b = append(b, name, 0, 0, 0, 0)
	start := len(b)
	b = add(b)
	binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
	return b
}

// fieldReader reads fields. Once it has failed, it reads zeros.
type fieldReader struct {
	b      []byte
	depth  int
	failed bool
}

// take returns the next n bytes.
func (r *fieldReader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.b, r.failed = nil, true
		return make([]byte, 8)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// long returns bytes that follow their number.
func (r *fieldReader) long() []byte { return r.take(binary.BigEndian.Uint32(r.take(4))) }

// field reads a field.
func (r *fieldReader) field() any {
	name := r.take(1)[0]
	if like, is := fixed[name]; is {
		v := reflect.New(reflect.TypeOf(like))
		_, _ = binary.Decode(r.take(uint32(binary.Size(like))), binary.BigEndian, v.Interface()) // as many as it needs
		return v.Elem().Interface()
	}
	switch name {
	case 'V':
		return nil
	case 'T':
		return time.Unix(int64(binary.BigEndian.Uint64(r.take(8))), 0)
	case 'S':
		return string(r.long())
	case 'x':
		return slices.Clone(r.long())
	case 'A':
		all := make([]any, 0, 16)
		r.inside(func(in *fieldReader) { all = append(all, in.field()) })
		return all
	case 'F':
		table := make(amqp.Table)
		r.inside(func(in *fieldReader) {
			name := string(in.take(uint32(in.take(1)[0])))
			table[name] = in.field()
		})
		return table
	}
	r.failed = true
	return nil
}

// inside reads what an array or a table holds, one by one.
func (r *fieldReader) inside(one func(*fieldReader)) {
	in := fieldReader{b: r.long(), depth: r.depth + 1, failed: r.depth >= maxDepth}
	for len(in.b) > 0 && !in.failed {
		one(&in)
	}
	r.failed = r.failed || in.failed
}
