package otlp

import (
	"encoding/json"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

func TestValues(t *testing.T) {
	for want, v := range map[string]attribute.Value{
		`{"boolValue":false}`:       attribute.BoolValue(false),
		`{"intValue":"-7"}`:         attribute.Int64Value(-7),
		`{"stringValue":""}`:        attribute.StringValue(""),
		`{"stringValue":"0.5"}`:     attribute.Float64Value(0.5),
		`{"stringValue":"[\"a\"]"}`: attribute.StringSliceValue([]string{"a"}),
	} {
		if got, err := json.Marshal(encodeValue(v)); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v, and not %s", v.String(), got, err, want)
		}
	}
}
