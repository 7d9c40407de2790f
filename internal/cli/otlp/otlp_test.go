package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
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

// spanOf returns a finished span of each kind of value.
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
		attribute.String("s", "text\xff"), attribute.Bool("b", false), attribute.Int64("i", math.MinInt64), attribute.Float64("f", 0),
		attribute.Float64("nan", math.NaN()), attribute.Float64("inf", math.Inf(1)), attribute.Float64("minus", math.Inf(-1)),
		attribute.StringSlice("ss", []string{"", "x"}), attribute.BoolSlice("bs", []bool{true}), attribute.Int64Slice("is", []int64{7}), attribute.Float64Slice("fs", nil))
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
	body, err := json.Marshal(encode([]sdktrace.ReadOnlySpan{spanOf(t), spanOf(t)}))
	if err != nil {
		t.Fatal(err)
	}
	in := decode(t, body)
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
	if a["s"].GetStringValue() != "text\ufffd" || a["i"].GetIntValue() != math.MinInt64 || !math.IsNaN(a["nan"].GetDoubleValue()) ||
		!math.IsInf(a["inf"].GetDoubleValue(), 1) || !math.IsInf(a["minus"].GetDoubleValue(), -1) {
		t.Errorf("the attributes are %v", a)
	}
	for name, want := range map[string]string{
		"b": "bool_value:false", "f": "double_value:0", "ss": `array_value:{values:{string_value:""} values:{string_value:"x"}}`,
		"bs": "array_value:{values:{bool_value:true}}", "is": "array_value:{values:{int_value:7}}", "fs": "array_value:{}",
	} {
		if got := strings.Join(strings.Fields(a[name].String()), " "); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// collect runs a collector and returns its URL.
func collect(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return srv.URL
}

func exporterOf(t *testing.T, env vars) sdktrace.SpanExporter {
	t.Helper()
	x, err := New(env.get, io.Discard, "tarry/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Shutdown(context.Background()) })
	return x
}

func TestExportWithTheVariables(t *testing.T) {
	got := make(chan *http.Request, 1)
	url := collect(t, func(w http.ResponseWriter, r *http.Request) {
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
	})
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
			if err := exporterOf(t, tt.env).ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{spanOf(t)}); err != nil {
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

// roundTrip is a transport without a network, for synctest.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestExportRetries(t *testing.T) {
	spans := []sdktrace.ReadOnlySpan{spanOf(t)}
	for _, code := range []int{429, 502, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			x := &Exporter{url: "http://collector", header: http.Header{}, timeout: time.Minute, client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if asked++; asked < 3 {
					return &http.Response{StatusCode: code, Body: http.NoBody}, nil
				}
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			})}}
			if err := x.ExportSpans(t.Context(), spans); err != nil || asked != 3 {
				t.Errorf("after %d: %v, asked %d times", code, err, asked)
			}
		})
	}
}

// No Retry-After makes the exporter ask without a pause: neither none at all nor one that is
// beyond a duration.
func TestExportPausesAlways(t *testing.T) {
	spans := []sdktrace.ReadOnlySpan{spanOf(t)}
	for _, after := range []string{"0", "-1", "9999999999", "9223372036854775807"} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			x := &Exporter{url: "http://collector", header: http.Header{}, timeout: 10 * time.Second, client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if asked++; asked > 100 {
					return nil, backoff.Permanent(errors.New("asked 100 times"))
				}
				return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {after}}, Body: http.NoBody}, nil
			})}}
			if err := x.ExportSpans(t.Context(), spans); !errors.Is(err, context.DeadlineExceeded) || asked > 20 {
				t.Errorf("Retry-After %s: %v, asked %d times", after, err, asked)
			}
		})
	}
}

// The collector's Retry-After is waited for, and the time-out ends the retries.
func TestExportWaitsAsTold(t *testing.T) {
	spans := []sdktrace.ReadOnlySpan{spanOf(t)}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		x := &Exporter{url: "http://collector", header: http.Header{}, timeout: 10 * time.Second, client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			asked = append(asked, time.Since(began))
			return &http.Response{StatusCode: 503, Status: "503 Service Unavailable", Header: http.Header{"Retry-After": {"4"}}, Body: http.NoBody}, nil
		})}}
		err := x.ExportSpans(t.Context(), spans)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "503") || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if len(asked) != 3 || asked[1] != 4*time.Second || asked[2] != 8*time.Second {
			t.Errorf("asked at %v", asked)
		}
	})
}

func TestExportFails(t *testing.T) {
	for _, tt := range []struct {
		code       int
		body, want string
	}{
		{400, "bad span", `answered 400 Bad Request: "bad span"`},
		{401, "", "answered 401"},
		{500, "", "answered 500"},
		{200, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`, `the collector rejected 3 spans: "too old"`},
	} {
		asked := 0
		url := collect(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(tt.code)
			_, _ = io.WriteString(w, tt.body)
		})
		url = strings.Replace(url, "://", "://user:secret@", 1)
		err := exporterOf(t, vars{"OTEL_EXPORTER_OTLP_ENDPOINT": url}).ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{spanOf(t)})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") || asked != 1 {
			t.Errorf("%d: %v, asked %d times", tt.code, err, asked)
		}
	}
}

func TestExportToTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pemOf(srv.Certificate().Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	x := exporterOf(t, vars{"OTEL_EXPORTER_OTLP_ENDPOINT": srv.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": ca, "OTEL_EXPORTER_OTLP_TIMEOUT": "60000"})
	if err := x.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{spanOf(t)}); err != nil {
		t.Error(err)
	}
}

func pemOf(der []byte) []byte {
	return []byte("-----BEGIN CERTIFICATE-----\n" + base64.StdEncoding.EncodeToString(der) + "\n-----END CERTIFICATE-----\n")
}

func TestConsole(t *testing.T) {
	var out bytes.Buffer
	x, err := New(vars{"OTEL_TRACES_EXPORTER": "console"}.get, &out, "")
	if err == nil {
		err = x.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{spanOf(t)})
	}
	if err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v: %q", err, out.String())
	}
	decode(t, out.Bytes())
}

func TestWrongVariables(t *testing.T) {
	notPEM := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(notPEM, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ value, want string }{
		"OTEL_TRACES_EXPORTER":                  {"zipkin", `OTEL_TRACES_EXPORTER is otlp, console or none, not "zipkin"`},
		"OTEL_EXPORTER_OTLP_PROTOCOL":           {"grpc", "set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":    {"http/protobuf", "set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"},
		"OTEL_EXPORTER_OTLP_ENDPOINT":           {"localhost:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is a URL such as http://localhost:4318"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":    {"grpc://localhost", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is a URL"},
		"OTEL_EXPORTER_OTLP_HEADERS":            {"secret", "OTEL_EXPORTER_OTLP_HEADERS is NAME=VALUE,NAME=VALUE"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {"10s", "OTEL_EXPORTER_OTLP_TIMEOUT is a number of milliseconds"},
		"OTEL_EXPORTER_OTLP_COMPRESSION":        {"zstd", "OTEL_EXPORTER_OTLP_COMPRESSION is gzip or none"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        {"/no/such", "OTEL_EXPORTER_OTLP_CERTIFICATE: open /no/such"},
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": {notPEM, "has no certificate in PEM"},
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": {notPEM, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its CLIENT_KEY"},
	} {
		_, err := New(vars{name: tt.value}.get, io.Discard, "")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %v", name, tt.value, err)
		}
	}
}
