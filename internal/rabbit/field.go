package rabbit

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxDepth is how deeply tables and arrays may nest. RabbitMQ's client has the same bound.
const maxDepth = 32

// fixed has a value of each type of field that has a fixed size, by the byte that names it.
var fixed = map[byte]any{
	't': false, 'B': uint8(0), 'b': int8(0), 's': int16(0), 'u': uint16(0), 'I': int32(0), 'i': uint32(0),
	'l': int64(0), 'f': float32(0), 'd': float64(0), 'D': amqp.Decimal{},
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
	for name, of := range fixed {
		if reflect.TypeOf(v) == reflect.TypeOf(of) {
			b, _ = binary.Append(append(b, name), binary.BigEndian, v) // its size is fixed
		}
	}
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
