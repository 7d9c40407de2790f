package otlp

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The types of opentelemetry-proto, in protobuf's JSON: 64-bit numbers are strings, and ids
// are hexadecimal.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl,omitempty"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope     scope  `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	scope struct {
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	span struct {
		spanRef
		ParentSpanID      string     `json:"parentSpanId,omitempty"`
		Name              string     `json:"name"`
		Kind              int        `json:"kind"`
		Start             string     `json:"startTimeUnixNano"`
		End               string     `json:"endTimeUnixNano"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
		Events            []event    `json:"events,omitempty"`
		DroppedEvents     int        `json:"droppedEventsCount,omitempty"`
		Links             []link     `json:"links,omitempty"`
		DroppedLinks      int        `json:"droppedLinksCount,omitempty"`
		Status            status     `json:"status"`
	}
	spanRef struct {
		TraceID    string `json:"traceId"`
		SpanID     string `json:"spanId"`
		TraceState string `json:"traceState,omitempty"`
		Flags      uint32 `json:"flags,omitempty"`
	}
	event struct {
		Time              string     `json:"timeUnixNano"`
		Name              string     `json:"name"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
	}
	link struct {
		spanRef
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value map[string]any // with one field, named after the type
)

// encode encodes spans of one provider. They share its resource.
func encode(spans []sdktrace.ReadOnlySpan) request {
	out := resourceSpans{
		Resource:  resource{attributes(spans[0].Resource().Attributes())},
		SchemaURL: spans[0].Resource().SchemaURL(),
	}
	index := make(map[instrumentation.Scope]int)
	for _, s := range spans {
		from := s.InstrumentationScope()
		i, ok := index[from]
		if !ok {
			i = len(out.ScopeSpans)
			index[from] = i
			out.ScopeSpans = append(out.ScopeSpans, scopeSpans{
				Scope:     scope{from.Name, from.Version, attributes(from.Attributes.ToSlice())},
				SchemaURL: from.SchemaURL,
			})
		}
		out.ScopeSpans[i].Spans = append(out.ScopeSpans[i].Spans, encodeSpan(s))
	}
	return request{[]resourceSpans{out}}
}

func encodeSpan(s sdktrace.ReadOnlySpan) span {
	out := span{
		spanRef:           ref(s.SpanContext(), s.Parent().IsRemote()),
		Name:              s.Name(),
		Kind:              int(s.SpanKind()), // numbered alike
		Start:             nanos(s.StartTime()),
		End:               nanos(s.EndTime()),
		Attributes:        attributes(s.Attributes()),
		DroppedAttributes: s.DroppedAttributes(),
		DroppedEvents:     s.DroppedEvents(),
		DroppedLinks:      s.DroppedLinks(),
		Status:            status{Message: s.Status().Description},
	}
	if s.Parent().SpanID().IsValid() {
		out.ParentSpanID = s.Parent().SpanID().String()
	}
	switch s.Status().Code { // numbered differently
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status.Code = 2
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, event{nanos(e.Time), e.Name, attributes(e.Attributes), e.DroppedAttributeCount})
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, link{ref(l.SpanContext, l.SpanContext.IsRemote()), attributes(l.Attributes), l.DroppedAttributeCount})
	}
	return out
}

// ref names a span. remote says whether its parent, or a linked span itself, is in another
// process.
func ref(c trace.SpanContext, remote bool) spanRef {
	flags := uint32(c.TraceFlags()) | 0x100 // says that the next bit is set correctly
	if remote {
		flags |= 0x200
	}
	return spanRef{c.TraceID().String(), c.SpanID().String(), c.TraceState().String(), flags}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(in []attribute.KeyValue) []keyValue {
	out := make([]keyValue, len(in))
	for i, kv := range in {
		out[i] = keyValue{string(kv.Key), encodeValue(kv.Value)}
	}
	return out
}

func encodeValue(v attribute.Value) value {
	switch v.Type() {
	case attribute.BOOL:
		return value{"boolValue": v.AsBool()}
	case attribute.INT64:
		return value{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return value{"doubleValue": double(v.AsFloat64())}
	case attribute.STRING:
		return value{"stringValue": v.AsString()}
	case attribute.BOOLSLICE:
		return list(v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		return list(v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		return list(v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.STRINGSLICE:
		return list(v.AsStringSlice(), attribute.StringValue)
	case attribute.BYTESLICE:
		return value{"bytesValue": v.AsByteSlice()}
	case attribute.SLICE:
		return list(v.AsSlice(), func(v attribute.Value) attribute.Value { return v })
	case attribute.MAP:
		return value{"kvlistValue": map[string]any{"values": attributes(v.AsMap())}}
	}
	return value{}
}

// double returns a number that JSON does not have as a string.
func double(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return f
}

func list[T any](in []T, of func(T) attribute.Value) value {
	out := make([]value, len(in))
	for i := range in {
		out[i] = encodeValue(of(in[i]))
	}
	return value{"arrayValue": map[string]any{"values": out}}
}
