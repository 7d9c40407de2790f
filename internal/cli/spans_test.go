package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// receiver takes spans by OTLP over HTTP.
type receiver struct {
	url string

	mu    sync.Mutex
	spans map[string]spanJSON // by name
	names map[string]string   // attributes of the resource
}

// spanJSON is what the tests read of a span.
type spanJSON struct {
	TraceID, SpanID, ParentSpanID string
	Kind                          int
	Name                          string
	Links                         []struct{ TraceID, SpanID string }
}

const (
	kindClient   = 3
	kindConsumer = 5
)

// tracesJSON is what the tests read of a request to a collector. Package otlp's own tests
// decode it by the official types.
type tracesJSON struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []struct {
				Key   string
				Value struct{ StringValue string }
			}
		}
		ScopeSpans []struct{ Spans []spanJSON }
	}
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{spans: make(map[string]spanJSON), names: make(map[string]string)}
	srv := httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var in tracesJSON
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil || req.Method != "POST" || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "this is no trace", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range in.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			r.names[a.Key] = a.Value.StringValue
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.spans[s.Name] = s
			}
		}
	}
	_, _ = io.WriteString(w, "{}")
}

// The whole way: a remote producer's context comes with the HTTP request, goes with the
// message to a webhook, and what the server does about it arrives at a collector.
func TestServeProcessExportsSpans(t *testing.T) {
	const (
		traceID = "0af7651916cd43dd8448eb211c80319c"
		spanID  = "b7ad6b7169203331"
		parent  = "00-" + traceID + "-" + spanID + "-01"
	)
	traces, hook := receive(t), listen(t, 200)
	cmd, w, stderr := serveProcess(t, write(t, "c.json", routesFile(route("order.*", hook.url, ""))),
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + traces.url, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_PROPAGATORS=b3"})
	server, _ := strings.CutPrefix(w.env[0], "TARRY_SERVER=")
	req, err := http.NewRequestWithContext(t.Context(), "POST", server+"/v1/queues/order.paid/messages", strings.NewReader(`{"body":"x","key":"42"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("traceparent", parent)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("status %s", resp.Status)
	}
	hook.gets(t, `order.paid "x"`)
	if got := hook.http.Get("traceparent"); got != parent {
		t.Errorf("the webhook got traceparent %q, want %q", got, parent)
	}
	signalTo(t, cmd, os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}

	traces.mu.Lock()
	defer traces.mu.Unlock()
	push, ok := traces.spans["push order.paid"]
	handle, ok2 := traces.spans["handle order.paid"]
	if !ok || !ok2 {
		t.Fatalf("there came %v; stderr: %s", traces.spans, stderr)
	}
	if push.TraceID != traceID || push.ParentSpanID != spanID || push.Kind != kindClient {
		t.Errorf("the push is %v", push)
	}
	if handle.TraceID == traceID || handle.ParentSpanID != "" || handle.Kind != kindConsumer {
		t.Errorf("what handed it on is %v", handle)
	}
	if len(handle.Links) != 1 || handle.Links[0].TraceID != traceID || handle.Links[0].SpanID != spanID {
		t.Errorf("what handed it on has links %v", handle.Links)
	}
	if traces.names["service.name"] != "tarry" || traces.names["deployment.environment.name"] != "test" {
		t.Errorf("the resource is %v", traces.names)
	}
}

// A collector that does not answer holds nothing up, and the end of the server for some
// seconds at most.
func TestServeProcessEndsWithoutACollector(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	end := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		asked <- struct{}{}
		<-end
	}))
	defer srv.Close()
	defer close(end)
	cmd, w, stderr := serveProcess(t, write(t, "c.json", `{}`), []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + srv.URL, "OTEL_BSP_SCHEDULE_DELAY=10"})
	w.must(t, "push", "q", "x")
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nothing was sent")
	}
	w.must(t, "push", "q", "y")
	signalTo(t, cmd, os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
	stderr.await(t, `the last traces could not be sent within 5s`)
}

func TestServeWithWrongTraces(t *testing.T) {
	for _, env := range [][3]string{
		{"OTEL_TRACES_EXPORTER", "nonsense", "OTEL_TRACES_EXPORTER is otlp, console or none"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"},
	} {
		t.Run(env[0], func(t *testing.T) {
			got := world{env: []string{env[0] + "=" + env[1], "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}}.tarry(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0")
			if got.code != exitUsage || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, env[2]) {
				t.Errorf("exit code %d: %s", got.code, got.stderr)
			}
		})
	}
}

func TestWantsSpans(t *testing.T) {
	for env, want := range map[string]bool{
		"":                                         false,
		"OTEL_SERVICE_NAME=a":                      false,
		"OTEL_TRACES_EXPORTER=otlp":                true,
		"OTEL_TRACES_EXPORTER=none":                false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http:":        true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=":             false,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http:": true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http: OTEL_TRACES_EXPORTER=none": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http: OTEL_SDK_DISABLED=TRUE":    false,
	} {
		if got := (&Program{Env: strings.Fields(env)}).wantsSpans(); got != want {
			t.Errorf("%s: %v, want %v", env, got, want)
		}
	}
}
