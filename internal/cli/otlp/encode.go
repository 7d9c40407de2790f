package otlp

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
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

// encode encodes spans of one tracer. They share its scope and its provider's resource.
func encode(spans []sdktrace.ReadOnlySpan) request {
	from, of := spans[0].InstrumentationScope(), spans[0].Resource()
	out := scopeSpans{Scope: scope{from.Name, from.Version, attributes(from.Attributes.ToSlice())}, SchemaURL: from.SchemaURL}
	for _, s := range spans {
		out.Spans = append(out.Spans, encodeSpan(s))
	}
	return request{[]resourceSpans{{resource{attributes(of.Attributes())}, []scopeSpans{out}, of.SchemaURL()}}}
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

// encodeValue encodes the types of attributes that tarry's spans have, and any other as text.
func encodeValue(v attribute.Value) value {
	switch v.Type() {
	case attribute.BOOL:
		return value{"boolValue": v.AsBool()}
	case attribute.INT64:
		return value{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	}
	return value{"stringValue": v.String()}
}
