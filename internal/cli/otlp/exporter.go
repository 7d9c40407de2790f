package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxAnswer is how much of a collector's answer is read.
const maxAnswer = 64 << 10

// maxRetryAfter is how many seconds a collector may ask for. It is more than any time-out, and
// few enough for a duration.
const maxRetryAfter = 1 << 30

// Exporter sends spans to a collector. It is safe for concurrent use.
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
type console struct {
	mu sync.Mutex
	w  io.Writer
}

func (c *console) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return json.NewEncoder(c.w).Encode(encode(spans))
}

func (c *console) Shutdown(context.Context) error { return nil }
