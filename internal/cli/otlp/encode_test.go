package otlp

import (
	"encoding/json"
	"math"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

func TestValues(t *testing.T) {
	for want, v := range map[string]attribute.Value{
		`{"boolValue":false}`:           attribute.BoolValue(false),
		`{"intValue":"-7"}`:             attribute.Int64Value(-7),
		`{"doubleValue":0.5}`:           attribute.Float64Value(0.5),
		`{"doubleValue":0}`:             attribute.Float64Value(0),
		`{"doubleValue":"NaN"}`:         attribute.Float64Value(math.NaN()),
		`{"doubleValue":"Infinity"}`:    attribute.Float64Value(math.Inf(1)),
		`{"doubleValue":"-Infinity"}`:   attribute.Float64Value(math.Inf(-1)),
		`{"stringValue":""}`:            attribute.StringValue(""),
		`{"bytesValue":"AP8="}`:         attribute.ByteSliceValue([]byte{0, 255}),
		`{"arrayValue":{"values":[]}}`:  attribute.StringSliceValue(nil),
		`{"kvlistValue":{"values":[]}}`: attribute.MapValue(),
		`{}`:                            {},

		`{"arrayValue":{"values":[{"boolValue":true}]}}`:                        attribute.BoolSliceValue([]bool{true}),
		`{"arrayValue":{"values":[{"intValue":"1"},{"intValue":"2"}]}}`:         attribute.Int64SliceValue([]int64{1, 2}),
		`{"arrayValue":{"values":[{"doubleValue":1.5},{"doubleValue":"NaN"}]}}`: attribute.Float64SliceValue([]float64{1.5, math.NaN()}),
		`{"arrayValue":{"values":[{"stringValue":"a"}]}}`:                       attribute.StringSliceValue([]string{"a"}),
		`{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"a"}]}}`:      attribute.SliceValue(attribute.Int64Value(1), attribute.StringValue("a")),
		`{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":true}}]}}`:   attribute.MapValue(attribute.Bool("k", true)),
	} {
		if got, err := json.Marshal(encodeValue(v)); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v, and not %s", v.String(), got, err, want)
		}
	}
}
