package tarry

import (
	"encoding/json"
	"fmt"
)

// Codec turns the values of a Topic into bodies and back. It must be safe for
// concurrent use.
type Codec interface {
	// ContentType names the encoding, such as "application/json".
	ContentType() string
	Encode(v any) ([]byte, error)
	// Decode stores into what v points to.
	Decode(body []byte, v any) error
}

// JSON is the default codec of a Topic.
var JSON Codec = jsonCodec{}

// Bytes passes []byte and string values through as they are; the default for
// topics of these types.
var Bytes Codec = bytesCodec{}

type jsonCodec struct{}

func (jsonCodec) ContentType() string             { return "application/json" }
func (jsonCodec) Encode(v any) ([]byte, error)    { return json.Marshal(v) }
func (jsonCodec) Decode(body []byte, v any) error { return json.Unmarshal(body, v) }

type bytesCodec struct{}

func (bytesCodec) ContentType() string { return "application/octet-stream" }

func (bytesCodec) Encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("the codec Bytes takes []byte and string, not %T", v)
}

func (bytesCodec) Decode(body []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = body
	case *string:
		*v = string(body)
	default:
		return fmt.Errorf("the codec Bytes fills []byte and string, not %T", v)
	}
	return nil
}
