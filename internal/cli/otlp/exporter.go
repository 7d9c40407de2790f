package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarryhq/tarry/internal/storeurl"
)

// maxAnswer is how much of a collector's answer is read.
const maxAnswer = 64 << 10

// maxRetryAfter is how many seconds a collector may ask for. It is more than any time-out, and
// few enough for a duration.
const maxRetryAfter = 1 << 30

// Exporter sends spans to a collector.
type Exporter struct {
	url     string
	header  http.Header
	timeout time.Duration
	gzip    bool
	client  *http.Client
}

// ExportSpans sends the spans in one request. It tries again while the collector is
// overloaded or cannot be reached, until the time-out.
func (x *Exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return err
	}
	if x.gzip {
		body = compress(body)
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	var last error
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := x.send(ctx, body)
		if ctx.Err() == nil {
			last = err
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(0))
	if err != nil && last != nil && ctx.Err() != nil {
		return fmt.Errorf("%w, after %w", err, last)
	}
	return err
}

// Shutdown closes the connections.
func (x *Exporter) Shutdown(context.Context) error {
	x.client.CloseIdleConnections()
	return nil
}

func (x *Exporter) send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header = x.header.Clone()
	if x.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return backoff.Permanent(refused(answer))
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		err := fmt.Errorf("%s answered %s", req.URL.Redacted(), resp.Status)
		// With 0 it would be asked again and again without a pause.
		if seconds, err2 := strconv.Atoi(resp.Header.Get("Retry-After")); err2 == nil && seconds > 0 {
			return errors.Join(err, backoff.RetryAfter(min(seconds, maxRetryAfter)))
		}
		return err
	}
	return backoff.Permanent(fmt.Errorf("%s answered %s: %.200q", req.URL.Redacted(), resp.Status, answer))
}

// refused returns an error if the collector took only some of the spans.
func refused(answer []byte) error {
	var in struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"` // a string in JSON, as all 64-bit numbers
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &in) != nil {
		return nil // it was taken, whatever else was said
	}
	if n, _ := in.PartialSuccess.RejectedSpans.Int64(); n > 0 {
		return fmt.Errorf("the collector rejected %d spans: %.200q", n, in.PartialSuccess.ErrorMessage)
	}
	return nil
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // to memory: it cannot fail
	_ = w.Close()
	return out.Bytes()
}

// console writes spans to a file.
type console struct{ w io.Writer }

func (c console) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	return json.NewEncoder(c.w).Encode(encode(spans))
}

func (c console) Shutdown(context.Context) error { return nil }

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second // of an export, with its retries
)

// New returns the exporter that the environment asks for. stdout takes the spans of the
// exporter "console", one batch a line. An error names the variable and says what it may be.
func New(env func(name string) (string, bool), stdout io.Writer, userAgent string) (sdktrace.SpanExporter, error) {
	v := variables{env: env}
	switch name, _ := env("OTEL_TRACES_EXPORTER"); name {
	case "", "otlp":
		return v.exporter(userAgent)
	case "console":
		return console{stdout}, nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is otlp, console or none, not %q", name)
	}
}

// variables reads OpenTelemetry's variables. err is the first error.
type variables struct {
	env func(name string) (string, bool)
	err error
}

// get returns the variable of traces if it is set, else that of all signals.
func (v *variables) get(suffix string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + suffix
	value, ok := v.env(name)
	if !ok {
		name = "OTEL_EXPORTER_OTLP_" + suffix
		value, _ = v.env(name)
	}
	return name, strings.TrimSpace(value)
}

func (v *variables) failf(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

func (v *variables) exporter(userAgent string) (sdktrace.SpanExporter, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = v.tls()
	v.protocol()
	x := &Exporter{
		url:     v.endpoint(),
		header:  v.header(),
		timeout: v.timeout(),
		gzip:    v.compression(),
		client:  &http.Client{Transport: transport},
	}
	x.header.Set("Content-Type", "application/json")
	x.header.Set("User-Agent", userAgent)
	if v.err != nil {
		return nil, v.err
	}
	return x, nil
}

func (v *variables) protocol() {
	if name, value := v.get("PROTOCOL"); value != "" && value != "http/json" {
		v.failf("%s is %q, but traces are sent by http/json only: set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json, "+
			"and an endpoint for HTTP (a collector has it on port 4318)", name, value)
	}
}

// endpoint returns the URL for traces. An endpoint of all signals gets the path of traces.
func (v *variables) endpoint() string {
	name, value := v.get("ENDPOINT")
	value = cmp.Or(value, defaultEndpoint)
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		v.failf("%s is a URL such as %s, not %q", name, defaultEndpoint, value)
		return ""
	}
	if !strings.Contains(name, "TRACES") {
		u = u.JoinPath("v1/traces")
	}
	return u.String()
}

// header reads NAME=VALUE,NAME=VALUE, percent-encoded.
func (v *variables) header() http.Header {
	h := make(http.Header)
	name, value := v.get("HEADERS")
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, ok := strings.Cut(pair, "=")
		key, err := url.PathUnescape(strings.TrimSpace(key))
		text, err2 := url.PathUnescape(strings.TrimSpace(text))
		if !ok || key == "" || err != nil || err2 != nil {
			v.failf("%s is NAME=VALUE,NAME=VALUE, percent-encoded", name) // the value may be a secret
			continue
		}
		h.Set(key, text)
	}
	return h
}

func (v *variables) timeout() time.Duration {
	name, value := v.get("TIMEOUT")
	if value == "" {
		return defaultTimeout
	}
	ms, err := strconv.ParseInt(value, 10, 32)
	if err != nil || ms <= 0 {
		v.failf("%s is a number of milliseconds, such as 10000, not %q", name, value)
	}
	return time.Duration(ms) * time.Millisecond
}

func (v *variables) compression() bool {
	name, value := v.get("COMPRESSION")
	if value != "" && value != "none" && value != "gzip" {
		v.failf("%s is gzip or none, not %q", name, value)
	}
	return value == "gzip"
}

// tls reads the certificates.
func (v *variables) tls() *tls.Config {
	caName, ca := v.get("CERTIFICATE")
	certName, cert := v.get("CLIENT_CERTIFICATE")
	_, key := v.get("CLIENT_KEY")
	c, caErr, certErr := storeurl.ClientTLS(ca, cert, key)
	if caErr != nil {
		v.failf("%s: %w", caName, caErr)
	}
	if certErr != nil {
		v.failf("%s and its CLIENT_KEY: %w", certName, certErr)
	}
	return c
}
