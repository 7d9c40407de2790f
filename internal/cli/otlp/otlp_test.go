package otlp

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

var spans = tracetest.SpanStubs{{Name: "push q"}}.Snapshots()

// vars is an environment.
type vars map[string]string

func (v vars) get(name string) (string, bool) { return v[name], v[name] != "" }

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

// roundTrip is a transport without a network, for synctest.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestExportRetries(t *testing.T) {
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
		err := exporterOf(t, vars{"OTEL_EXPORTER_OTLP_ENDPOINT": url}).ExportSpans(t.Context(), spans)
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
	if err := x.ExportSpans(t.Context(), spans); err != nil {
		t.Error(err)
	}
}

func pemOf(der []byte) []byte {
	return []byte("-----BEGIN CERTIFICATE-----\n" + base64.StdEncoding.EncodeToString(der) + "\n-----END CERTIFICATE-----\n")
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
