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

// fixed are the types of fields that have a fixed size, by the byte that names them.
var fixed = map[byte]reflect.Type{
	't': reflect.TypeFor[bool](), 'B': reflect.TypeFor[uint8](), 'b': reflect.TypeFor[int8](),
	's': reflect.TypeFor[int16](), 'u': reflect.TypeFor[uint16](), 'I': reflect.TypeFor[int32](),
	'i': reflect.TypeFor[uint32](), 'l': reflect.TypeFor[int64](), 'f': reflect.TypeFor[float32](),
	'd': reflect.TypeFor[float64](), 'D': reflect.TypeFor[amqp.Decimal](),
}

var fixedNames = func() map[reflect.Type]byte {
	names := make(map[reflect.Type]byte, len(fixed))
	for name, typ := range fixed {
		names[typ] = name
	}
	return names
}()

// appendField appends a field of a table as RabbitMQ writes it, the names of tables sorted.
// v has one of the types that RabbitMQ's client reads.
func appendField(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'V')
	case string:
		return appendLong(append(b, 'S'), v)
	case []byte:
		return appendLong(append(b, 'x'), v)
	case time.Time:
		return binary.BigEndian.AppendUint64(append(b, 'T'), uint64(v.Unix()))
	case []any:
		var in []byte
		for _, each := range v {
			in = appendField(in, each)
		}
		return appendLong(append(b, 'A'), in)
	case amqp.Table:
		var in []byte
		for _, name := range slices.Sorted(maps.Keys(v)) {
			in = append(append(in, byte(len(name))), name...)
			in = appendField(in, v[name])
		}
		return appendLong(append(b, 'F'), in)
	}
	b = append(b, fixedNames[reflect.TypeOf(v)])
	b, _ = binary.Append(b, binary.BigEndian, v) // its size is fixed
	return b
}

func appendLong[T string | []byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

// readField reads a field, and returns what follows it.
func readField(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 || depth > maxDepth {
		return nil, nil, errEnvelope
	}
	name, b := b[0], b[1:]
	if typ, ok := fixed[name]; ok {
		to := reflect.New(typ)
		n, err := binary.Decode(b, binary.BigEndian, to.Interface())
		if err != nil {
			return nil, nil, errEnvelope
		}
		return to.Elem().Interface(), b[n:], nil
	}
	if name == 'V' {
		return nil, b, nil
	}
	if name == 'T' {
		if len(b) < 8 {
			return nil, nil, errEnvelope
		}
		return time.Unix(int64(binary.BigEndian.Uint64(b)), 0), b[8:], nil
	}
	if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
		return nil, nil, errEnvelope
	}
	end := 4 + int(binary.BigEndian.Uint32(b))
	in, rest := b[4:end], b[end:]
	switch name {
	case 'S':
		return string(in), rest, nil
	case 'x':
		return slices.Clone(in), rest, nil
	case 'A':
		v, err = readArray(in, depth+1)
	case 'F':
		v, err = readTable(in, depth+1)
	default:
		err = errEnvelope
	}
	return v, rest, err
}

func readArray(b []byte, depth int) (all []any, err error) {
	all = []any{}
	for len(b) > 0 {
		var v any
		if v, b, err = readField(b, depth); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func readTable(b []byte, depth int) (table amqp.Table, err error) {
	table = make(amqp.Table)
	for len(b) > 0 {
		n := 1 + int(b[0])
		if len(b) < n {
			return nil, errEnvelope
		}
		name := string(b[1:n])
		if table[name], b, err = readField(b[n:], depth); err != nil {
			return nil, err
		}
	}
	return table, nil
}
