// Package otlp_test decodes what the exporter sends by the official types.
package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tarryhq/tarry/internal/cli/otlp"
)

// decode reads a request by the official types. Ids are hexadecimal in OTLP, where protobuf's
// JSON has base64.
func decode(t *testing.T, body []byte) *collector.ExportTraceServiceRequest {
	t.Helper()
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(idsInBase64(t, tree))
	if err != nil {
		t.Fatal(err)
	}
	var in collector.ExportTraceServiceRequest
	if err := protojson.Unmarshal(body, &in); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return &in
}

func idsInBase64(t *testing.T, tree any) any {
	switch v := tree.(type) {
	case []any:
		for i := range v {
			v[i] = idsInBase64(t, v[i])
		}
	case map[string]any:
		for k, x := range v {
			v[k] = idsInBase64(t, x)
			if k == "traceId" || k == "spanId" || k == "parentSpanId" {
				b, err := hex.DecodeString(x.(string))
				if err != nil {
					t.Errorf("%s: %v", k, err)
				}
				v[k] = base64.StdEncoding.EncodeToString(b)
			}
		}
	}
	return tree
}

// vars is an environment.
type vars map[string]string

func (v vars) get(name string) (string, bool) { return v[name], v[name] != "" }

// spanOf returns a finished span.
func spanOf(t *testing.T) sdktrace.ReadOnlySpan {
	t.Helper()
	var out sdktrace.ReadOnlySpan
	p := sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(exportFunc(func(spans []sdktrace.ReadOnlySpan) { out = spans[0] })),
		sdktrace.WithResource(sdkresource.NewWithAttributes("https://example.com/schema", attribute.String("service.name", "tarry"))),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeCountLimit: 20, EventCountLimit: 1, LinkCountLimit: 1, AttributePerEventCountLimit: 1, AttributePerLinkCountLimit: 1, AttributeValueLengthLimit: -1}),
	)
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	other := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{3}, SpanID: trace.SpanID{4}})
	two := []attribute.KeyValue{attribute.Int("a", 1), attribute.Int("b", 2)}
	_, span := p.Tracer("tracer", trace.WithInstrumentationVersion("v1"), trace.WithInstrumentationAttributes(attribute.Bool("x", true)), trace.WithSchemaURL("https://example.com/scope")).
		Start(trace.ContextWithSpanContext(t.Context(), parent), "push q", trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithTimestamp(time.Unix(1, 2)), trace.WithLinks(trace.Link{SpanContext: other}, trace.Link{SpanContext: other, Attributes: two}))
	span.SetAttributes(
		attribute.String("s", "text\xff"), attribute.Bool("b", false), attribute.Int64("i", math.MinInt64), attribute.Float64("f", 0.5))
	span.AddEvent("first")
	span.AddEvent("second", trace.WithTimestamp(time.Unix(3, 0)), trace.WithAttributes(two...))
	span.SetStatus(codes.Error, "it failed")
	span.End(trace.WithTimestamp(time.Unix(5, 0)))
	return out
}

type exportFunc func([]sdktrace.ReadOnlySpan)

func (f exportFunc) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	f(spans)
	return nil
}
func (f exportFunc) Shutdown(context.Context) error { return nil }

func TestEncodingByTheOfficialTypes(t *testing.T) {
	var out bytes.Buffer
	x, err := otlp.New(vars{"OTEL_TRACES_EXPORTER": "console"}.get, &out, "")
	if err == nil {
		err = x.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{spanOf(t), spanOf(t)})
	}
	if err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v: %q", err, out.String())
	}
	in := decode(t, out.Bytes())
	if len(in.ResourceSpans) != 1 || len(in.ResourceSpans[0].ScopeSpans) != 1 || len(in.ResourceSpans[0].ScopeSpans[0].Spans) != 2 {
		t.Fatalf("two spans of one scope are %v", in)
	}
	rs := in.ResourceSpans[0]
	if rs.SchemaUrl != "https://example.com/schema" || rs.Resource.Attributes[0].Value.GetStringValue() != "tarry" {
		t.Errorf("the resource is %v", rs)
	}
	sc := rs.ScopeSpans[0]
	if sc.Scope.Name != "tracer" || sc.Scope.Version != "v1" || !sc.Scope.Attributes[0].Value.GetBoolValue() || sc.SchemaUrl != "https://example.com/scope" {
		t.Errorf("the scope is %v", sc.Scope)
	}
	s := sc.Spans[0]
	if s.Name != "push q" || s.Kind != traces.Span_SPAN_KIND_PRODUCER || s.StartTimeUnixNano != 1e9+2 || s.EndTimeUnixNano != 5e9 ||
		s.TraceId[0] != 1 || s.ParentSpanId[0] != 2 || len(s.SpanId) != 8 || s.TraceState != "vendor=1" || s.Flags != 0x301 ||
		s.Status.Code != traces.Status_STATUS_CODE_ERROR || s.Status.Message != "it failed" {
		t.Errorf("the span is %v", s)
	}
	if len(s.Events) != 1 || s.Events[0].Name != "second" || s.Events[0].TimeUnixNano != 3e9 || s.Events[0].DroppedAttributesCount != 1 || s.DroppedEventsCount != 1 {
		t.Errorf("the events are %v, and %d dropped", s.Events, s.DroppedEventsCount)
	}
	if len(s.Links) != 1 || s.Links[0].TraceId[0] != 3 || s.Links[0].SpanId[0] != 4 || s.Links[0].Flags != 0x100 || s.Links[0].DroppedAttributesCount != 1 || s.DroppedLinksCount != 1 {
		t.Errorf("the links are %v, and %d dropped", s.Links, s.DroppedLinksCount)
	}
	a := make(map[string]*common.AnyValue)
	for _, kv := range s.Attributes {
		a[kv.Key] = kv.Value
	}
	if a["s"].GetStringValue() != "text\ufffd" || a["i"].GetIntValue() != math.MinInt64 {
		t.Errorf("the attributes are %v", a)
	}
	for name, want := range map[string]string{"b": "bool_value:false", "f": `string_value:"0.5"`} {
		if got := strings.Join(strings.Fields(a[name].String()), " "); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestExportWithTheVariables(t *testing.T) {
	got := make(chan *http.Request, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		got <- r
		_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"0","errorMessage":"a warning"}}`)
	}))
	t.Cleanup(srv.Close)
	url := srv.URL
	for _, tt := range []struct {
		name, path, token, encoding string
		env                         vars
	}{
		{"general", "/base/v1/traces", "a b", "", vars{"OTEL_EXPORTER_OTLP_ENDPOINT": url + "/base/", "OTEL_EXPORTER_OTLP_HEADERS": "x-token=a%20b, y=1,"}},
		{"of traces", "/own", "c", "gzip", vars{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url + "/own",
			"OTEL_EXPORTER_OTLP_HEADERS": "x-token=a", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-token=c",
			"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json",
			"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "60000",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, err := otlp.New(tt.env.get, io.Discard, "tarry/test")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = x.Shutdown(context.Background()) }()
			if err := x.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{spanOf(t)}); err != nil {
				t.Fatal(err)
			}
			r := <-got
			h := r.Header
			if r.Method != "POST" || r.URL.Path != tt.path || h.Get("X-Token") != tt.token || h.Get("Content-Encoding") != tt.encoding ||
				h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "tarry/test" {
				t.Errorf("%s %s with %v", r.Method, r.URL, h)
			}
			body, _ := io.ReadAll(r.Body)
			if in := decode(t, body); in.ResourceSpans[0].ScopeSpans[0].Spans[0].Name != "push q" {
				t.Errorf("it sent %s", body)
			}
		})
	}
}
