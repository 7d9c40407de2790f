package httpengine

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// measured counts the requests of an engine.
type measured struct {
	requests   figure.Times
	waits      figure.Times // of requests that wait for messages
	waiting    atomic.Int64
	errors     atomic.Int64 // answers with a status of 500 or more
	unanswered atomic.Int64
	failing    atomic.Bool   // the last request got no answer; cancelled ones do not count
	dials      *atomic.Int64 // nil: the transport is the caller's own
}

// dialing returns d's dial function and a counter of its calls.
func dialing(d net.Dialer) (func(ctx context.Context, network, addr string) (net.Conn, error), *atomic.Int64) {
	n := new(atomic.Int64)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return d.DialContext(ctx, network, addr)
	}, n
}

// answered counts an answer.
func (m *measured) answered(c *call, since time.Time, status int) {
	if c.wait > 0 {
		m.waits.Since(since)
	} else {
		m.requests.Since(since)
	}
	if status/100 == 5 {
		m.errors.Add(1)
	}
	m.failing.Store(false)
}

// lost counts a request without an answer.
func (m *measured) lost() {
	m.unanswered.Add(1)
	m.failing.Store(true)
}

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer.
func (e *Engine) Figures() []engine.Figure {
	l, m := figure.Of("remote"), &e.measured
	l.Flag("up", "Whether the last request was answered.", !m.failing.Load())
	l.Times("request_seconds", "How long answers took, other than to requests that wait for messages.", &m.requests)
	l.Times("wait_seconds", "How long requests that wait for messages took.", &m.waits)
	l.Gauge("waiting", "Requests that wait for messages now.", float64(m.waiting.Load()))
	l.TotalBy("failures", "Requests without an answer, or answered with a server error.", "cause",
		figure.By{Label: "unanswered", Value: float64(m.unanswered.Load())},
		figure.By{Label: "server_error", Value: float64(m.errors.Load())})
	if m.dials != nil {
		l.Total("dials", "Connections begun.", float64(m.dials.Load()))
	}
	return l.All()
}
